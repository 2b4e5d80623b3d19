"""Settings: frozen dataclasses whose fields carry unit, default, bounds and meaning, and the loader that fills them."""

from .bookie import BookieSettings
from .client import ClientSettings
from .loader import Configuration, Key, keys_of, load, section_of, to_toml
from .node import NodeSettings
from .process import MetadataSettings, ProcessSettings
from .sections import all_sections
from .setting import SettingInfo, setting

__all__ = [
    "BookieSettings",
    "ClientSettings",
    "Configuration",
    "Key",
    "MetadataSettings",
    "NodeSettings",
    "ProcessSettings",
    "SettingInfo",
    "all_sections",
    "keys_of",
    "load",
    "section_of",
    "setting",
    "to_toml",
]
