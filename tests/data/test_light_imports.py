"""Readers cost what they need: no torch, pandas, Pillow or plots before they are used."""

import subprocess
import sys

HEAVY = ("torch", "pandas", "PIL", "matplotlib", "scipy", "kornia", "pyarrow")


def test_names_of_the_data_package_load_nothing_heavy():
    code = "import sys; from gaussianmlr.data import RankedData, from_arrays, read_nsid, read_table; "
    code += "from_arrays([[1.0], [2.0]], [[1, 0], [0, 1]]).describe(); "
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
