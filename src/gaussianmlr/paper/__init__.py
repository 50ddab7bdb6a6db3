"""The paper, reproduced: every table and figure from cells, and every cell from one training."""
