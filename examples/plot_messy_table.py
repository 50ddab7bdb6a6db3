"""
A messy table
=============

Semicolons, decimal commas, gaps, categories, dates, orders with commas, and a label that somebody mistyped:
tables as people keep them.
"""

# %%
# A file as a spreadsheet program exports it.
import tempfile
from pathlib import Path

from gaussianmlr import DataError, GaussianMLR
from gaussianmlr.data import check, read_table

folder = Path(tempfile.mkdtemp())
rows = ["Höhe;Region;Tag;Bemerkung;Ziel"]
for number in range(60):
    high = number % 3
    height = f"{[0.2, 1.4, 3.1][high] + number / 100:.2f}".replace(".", ",") if number % 7 else ""
    region = ["Küste", "Hügel", "Alpen"][high]
    order = ["sea, sky", "sky, mountain", "mountain, sky"][high]
    rows.append(f"{height};{region};2024-0{1 + number % 9}-15;-;{order}")
file = folder / "hikes.csv"
file.write_text("\n".join(rows).replace("sea, sky", "sae, sky", 1) + "\n", encoding="utf-8")
print("\n".join(rows[:4]))

# %%
# Orders such as ``sea, sky`` could also be one strange label, so the reader asks instead of guessing.
try:
    read_table(file, ranking="Ziel")
except DataError as error:
    print(error)

# %%
# Now it knows. What it found out is in the notes.
data = read_table(file, ranking="Ziel", order_separator=",", drop=["Bemerkung"])
print(data)
for name, column in zip(data.feature_names, data.encoding):
    print(f"{name}: {column.kind}")
for note in data.notes:
    print("note:", note)

# %%
# `gmlr data check hikes.csv` looks for what is probably wrong; so does `check` in Python.
from gaussianmlr.data.readers.layout import Layout

print(check(file, layout=Layout(ranking="Ziel", order_separator=",", drop=("Bemerkung",))))

# %%
# The labels in your head are three, so say so: the mistyped one is an error with its row.
try:
    read_table(file, ranking="Ziel", order_separator=",", labels=["mountain", "sea", "sky"])
except DataError as error:
    print(error)

# %%
# Gaps and categories go into the model as they are.
file.write_text(file.read_text("utf-8").replace("sae", "sea"), encoding="utf-8")
data = read_table(file, ranking="Ziel", order_separator=",", drop=["Bemerkung"])
ranker = GaussianMLR(labels=data.labels, random_state=0).fit(data.features, data.ranks)
print(dict(zip(data.orders()[:3], ranker.predict_order(data.features[:3]))))
