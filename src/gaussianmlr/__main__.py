"""`python -m gaussianmlr`: the command `gmlr`, where scripts are not on the path."""

from gaussianmlr.cli import main

if __name__ == "__main__":
    main()
