"""Height and width of the images that each backbone was made for; None for tables."""

SIZES: dict[str, int | None] = {
    "fast": 224,
    "resnet18": 224,
    "efficientnet-lite0": 224,
    "efficientnet-lite1": 240,
    "efficientnet-lite2": 260,
    "mlp": None,
}
