"""How Sphinx makes the site: ``make docs``. Nothing on it comes from the network, neither when built nor when read."""

import importlib.util
import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "_ext")]
# Notebooks import the same sources; arrays of examples are too small for threads.
os.environ |= {"PYTHONPATH": str(DOCS.parent), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Notebooks run without what their reader has set for IPython, and its kernel writes no line for each of them.
PROFILE = DOCS / "_build" / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", "utf-8")
os.environ["IPYTHONDIR"] = str(PROFILE.parent)

import ppdp  # noqa: E402  found on the path above

project = "ppdp"
version = release = ppdp.__version__
copyright = "the authors of ppdp, Apache License 2.0"
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "outside",
    *(["kernels"] if sys.platform == "linux" else []),  # elsewhere each kernel imports for itself
    "quick",
    "api",
]
exclude_patterns = ["_build", "gallery", "examples/**/*.ipynb", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
nitpicky = False
highlight_language = "python"
pygments_style = "friendly"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_show_tb = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_merge_streams = True
# Adapters of networks need torch, which an installation for the site has not; its tests run this notebook.
nb_execution_excludepatterns = [] if importlib.util.find_spec("torch") else ["*private-lora*"]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "nested_sections": True,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (400, 280),
    "plot_gallery": True,
    "reset_modules": ("matplotlib", "quick.keep"),
}

autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch", "peft", "safetensors"]
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "ppdp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "search": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "ppdp"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
