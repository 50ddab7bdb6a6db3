"""Ways to spoil bytes and trees: deterministic, given a generator."""

import copy
import math
import struct

ODD_NUMBERS = (-1, 0, 1, 2, 255, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324)
ODD_NUMBERS += (math.nan, math.inf, -math.inf)
ODD_TEXTS = ("", " ", "x" * 300, "\ud800", "a\0b", "../../etc/passwd", "%n%s", "=1+1", "\N{SNOWMAN}")
ODD_TEXTS += ("é", "nan")
# What a file may name, in the hope that loading imports or calls it.
NAMED_CODE = ("evilmod:Evil", "torch.hub:load", "logging:basicConfig", "os:system", "builtins:eval")
NAMED_CODE += ("evilmod",)


def spoil_bytes(random, data, tokens=(), others=()):
    """The data with one to eight changes; `tokens` are inserted, `others` are spliced in."""
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        way = random.randrange(9)
        at = random.randrange(len(data) + 1)
        long = min(1 << random.randrange(10), len(data) - at)
        if way == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = random.choice((0, 1, 10, 32, 44, 127, 128, 255))
        elif way == 2:
            del data[at : at + long]
        elif way == 3:
            data[at:at] = data[at : at + long] * random.choice((1, 2, 50))
        elif way == 4:
            del data[at:]
        elif way == 5:
            data[at:at] = random.randbytes(long)
        elif way == 6 and tokens:
            token = random.choice(tokens)
            data[at : at + random.choice((0, len(token)))] = token
        elif way == 7:
            number = random.choice((0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF))
            order = random.choice("<>")
            data[at : at + 4] = struct.pack(f"{order}I", number)
        elif way == 8 and others:
            other = random.choice(others)
            data[at:] = other[min(at, len(other)) :]
    return bytes(data)


def spoil_tree(random, tree, values=()):
    """The tree of dicts and lists with one to four changes."""
    tree = copy.deepcopy(tree)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            return _odd(random, values)
        holder, key = random.choice(places)
        way = random.randrange(8)
        value = holder[key]
        if way <= 2:
            holder[key] = _odd(random, values)
        elif way == 3:
            del holder[key]
        elif way == 4 and isinstance(value, list) and value:
            holder[key] = value * random.choice((2, 1000)) if random.random() < 0.5 else value[:-1]
        elif way == 4 and isinstance(value, int | float) and not isinstance(value, bool):
            holder[key] = value * random.choice((-1, 2, 0.5, 1e9))
        elif way == 5 and isinstance(holder, dict):
            holder[random.choice((f"{key}s", "", "__class__", "x" * 300, "\ud800"))] = holder.pop(key)
        elif way == 5:
            holder.insert(key, _odd(random, values))
        elif way == 6:
            other, there = random.choice(places)
            if there in other if isinstance(other, dict) else there < len(other):
                holder[key] = copy.deepcopy(other[there])
        else:
            holder[key] = [value] if random.random() < 0.5 else {"value": value}
    return tree


def _odd(random, values):
    kind = random.randrange(6 if values else 5)
    if kind == 0:
        return random.choice((None, True, False, [], {}, [[]], [None], {"a": {"b": []}}))
    if kind == 1:
        return random.choice(ODD_NUMBERS)
    if kind == 2:
        return random.choice(ODD_TEXTS)
    if kind == 3:
        return random.choice(NAMED_CODE)
    if kind == 4:
        return random.choice((random.randint(-5, 5), random.uniform(-2, 2), str(random.randint(0, 99))))
    return random.choice(values)


def _places(tree):
    """Every (holder, key) below."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])
