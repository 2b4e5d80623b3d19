"""Settings: frozen dataclasses whose fields carry unit, default, bounds and meaning, and the loader that fills them."""

from triplicate.config.autorecovery_settings import AutorecoverySettings
from triplicate.config.bookie_settings import BookieSettings
from triplicate.config.client_settings import ClientSettings
from triplicate.config.database_client_settings import DatabaseClientSettings
from triplicate.config.environment import CONFIG_VARIABLE, METADATA_VARIABLE, settings_of_environment
from triplicate.config.loader import Configuration, Key, keys_of, load, section_of, to_toml, variable_of
from triplicate.config.node_settings import NodeSettings
from triplicate.config.process_settings import MetadataSettings, ProcessSettings
from triplicate.config.resp_settings import RespSettings
from triplicate.config.sections import all_sections
from triplicate.config.security_settings import SecuritySettings
from triplicate.config.setting import SettingInfo, setting
from triplicate.config.store_settings import StoreSettings

__all__ = [
    "CONFIG_VARIABLE",
    "METADATA_VARIABLE",
    "AutorecoverySettings",
    "BookieSettings",
    "ClientSettings",
    "Configuration",
    "DatabaseClientSettings",
    "Key",
    "MetadataSettings",
    "NodeSettings",
    "ProcessSettings",
    "RespSettings",
    "SecuritySettings",
    "SettingInfo",
    "StoreSettings",
    "all_sections",
    "keys_of",
    "load",
    "section_of",
    "setting",
    "settings_of_environment",
    "to_toml",
    "variable_of",
]
