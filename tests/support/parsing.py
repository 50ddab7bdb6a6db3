"""A page as tests read it: its elements, texts, tables and files, by Python's own parser."""

import base64
from html.parser import HTMLParser

VOID = {"img", "meta", "br", "link", "input", "hr", "base"}


class Node:
    """An element, with its attributes and children (texts are strings)."""

    def __init__(self, tag, attributes=()):
        self.tag, self.attributes, self.children = tag, dict(attributes), []

    @property
    def text(self):
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return "".join(parts)

    def all(self, tag=None):
        """Every element below, in the order of the page."""
        for child in self.children:
            if isinstance(child, Node):
                if tag is None or child.tag == tag:
                    yield child
                yield from child.all(tag)

    def first(self, tag):
        return next(self.all(tag))


class _Builder(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, attrs)
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, attrs))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


class Page:
    """A report that was written."""

    def __init__(self, file):
        self.source = file.read_text("utf-8")
        builder = _Builder()
        builder.feed(self.source)
        builder.close()
        assert builder.open == [builder.root], "an element was not closed"
        self.root = builder.root
        self.text = " ".join(self.root.first("body").text.split())

    @property
    def sections(self):
        return {one.attributes["id"]: one for one in self.root.all("section")}

    def table(self, caption):
        """Rows of texts, the headings first."""
        for table in self.root.all("table"):
            if table.first("caption").text == caption:
                return [
                    [cell.text for cell in row.all() if cell.tag in ("th", "td")] for row in table.all("tr")
                ]
        raise AssertionError(f"no table {caption!r}")

    def download(self, name):
        """The text that a link holds."""
        for link in self.root.all("a"):
            if link.attributes.get("download") == name:
                return base64.b64decode(link.attributes["href"].partition("base64,")[2]).decode()
        raise AssertionError(f"no file {name!r}")
