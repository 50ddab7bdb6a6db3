"""Settings of Sphinx: `make docs` builds the pages into docs/_build/html, with warnings as errors."""

from gaussianmlr import __version__

project = "gaussianmlr"
copyright = "the gaussianmlr maintainers"  # noqa: A001 -- Sphinx reads this name
version = release = __version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",  # the reference comes from the docstrings
    "sphinx.ext.napoleon",  # which are numpydoc
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",  # runs examples/, and shows what they print and draw
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),  # frames, not what a last call of matplotlib returns
}
default_role = "literal"  # `names` in docstrings and examples
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes of dataclasses are listed once
autodoc_typehints = "none"  # the numpydoc sections say the types
autodoc_member_order = "bysource"
exclude_patterns = ["_build", "examples/*.ipynb", "examples/*.py"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tasks.css"]
html_title = f"gaussianmlr {__version__}"
suppress_warnings = ["ref.python"]  # two classes may have attributes of one name


def _skipped(app, what, name, obj, skip, options):
    """Whether to leave out a member: fields of named tuples say no more than their place."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app):
    """Connect the above, as Sphinx asks."""
    app.connect("autodoc-skip-member", _skipped)
