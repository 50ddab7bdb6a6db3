"""`python -m gaussianmlr`: the command `gmlr`, where scripts are not on the path."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, whose modules must not be imported

    from gaussianmlr.cli.main import main

    main()
