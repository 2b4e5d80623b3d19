"""The tables of PostgreSQL's system catalogue, with all their columns in PostgreSQL's order, and rows of them. Pure.

A table that lists nothing here (publications, foreign tables, text search) needs its line alone: it exists and is empty. Left out are the
tables that only superusers can read in PostgreSQL (`pg_authid`, `pg_statistic`, `pg_user_mapping` and some more).
Source: PostgreSQL 15, catalogue ``pg_attribute``.
"""

from __future__ import annotations

from triplicate.sql.core.interface import Row, Value

SYSTEM_OIDS = {
    "pg_aggregate": 2600, "pg_am": 2601, "pg_amop": 2602, "pg_amproc": 2603, "pg_attrdef": 2604, "pg_attribute": 1249,
    "pg_auth_members": 1261, "pg_available_extensions": 12081, "pg_cast": 2605, "pg_class": 1259, "pg_collation": 3456,
    "pg_constraint": 2606, "pg_conversion": 2607, "pg_cursors": 12077, "pg_database": 1262, "pg_db_role_setting": 2964,
    "pg_default_acl": 826, "pg_depend": 2608, "pg_description": 2609, "pg_enum": 3501, "pg_event_trigger": 3466, "pg_extension": 3079,
    "pg_foreign_data_wrapper": 2328, "pg_foreign_server": 1417, "pg_foreign_table": 3118, "pg_index": 2610, "pg_indexes": 12043,
    "pg_inherits": 2611, "pg_init_privs": 3394, "pg_language": 2612, "pg_largeobject_metadata": 2995, "pg_matviews": 12038,
    "pg_namespace": 2615, "pg_opclass": 2616, "pg_operator": 2617, "pg_opfamily": 2753, "pg_parameter_acl": 6243,
    "pg_partitioned_table": 3350, "pg_policy": 3256, "pg_proc": 1255, "pg_publication": 6104, "pg_publication_namespace": 6237,
    "pg_publication_rel": 6106, "pg_range": 3541, "pg_rewrite": 2618, "pg_roles": 12000, "pg_seclabel": 3596, "pg_sequence": 2224,
    "pg_sequences": 12048, "pg_settings": 12104, "pg_shdepend": 1214, "pg_shdescription": 2396, "pg_shseclabel": 3592,
    "pg_statistic_ext": 3381, "pg_subscription": 6100, "pg_tables": 12033, "pg_tablespace": 1213, "pg_transform": 3576, "pg_trigger":
    2620, "pg_ts_config": 3602, "pg_ts_config_map": 3603, "pg_ts_dict": 3600, "pg_ts_parser": 3601, "pg_ts_template": 3764, "pg_type":
    1247, "pg_user": 12014, "pg_user_mappings": 12327, "pg_views": 12028,
}  # fmt: skip
"""Maps the name of each table and view to its oid."""
SYSTEM_TABLES: dict[str, str] = {
    "pg_aggregate": (
        "aggfnoid regproc, aggkind char1, aggnumdirectargs integer, aggtransfn regproc, aggfinalfn regproc, aggcombinefn regproc, "
        "aggserialfn regproc, aggdeserialfn regproc, aggmtransfn regproc, aggminvtransfn regproc, aggmfinalfn regproc, aggfinalextra "
        "boolean, aggmfinalextra boolean, aggfinalmodify char1, aggmfinalmodify char1, aggsortop oid, aggtranstype oid, aggtransspace "
        "integer, aggmtranstype oid, aggmtransspace integer, agginitval text, aggminitval text"
    ),
    "pg_am": "oid oid, amname name, amhandler regproc, amtype char1",
    "pg_amop": (
        "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy integer, amoppurpose char1, amopopr oid, amopmethod "
        "oid, amopsortfamily oid"
    ),
    "pg_amproc": "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum integer, amproc regproc",
    "pg_attrdef": "oid oid, adrelid oid, adnum integer, adbin text",
    "pg_attribute": (
        "attrelid oid, attname name, atttypid oid, attstattarget integer, attlen integer, attnum integer, attndims integer, attcacheoff "
        "integer, atttypmod integer, attbyval boolean, attalign char1, attstorage char1, attcompression char1, attnotnull boolean, "
        "atthasdef boolean, atthasmissing boolean, attidentity char1, attgenerated char1, attisdropped boolean, attislocal boolean, "
        "attinhcount integer, attcollation oid, attacl text[], attoptions text[], attfdwoptions text[], attmissingval anyarray"
    ),
    "pg_auth_members": "roleid oid, member oid, grantor oid, admin_option boolean",
    "pg_available_extensions": "name name, default_version text, installed_version text, comment text",
    "pg_cast": "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char1, castmethod char1",
    "pg_class": (
        "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, relfilenode oid, reltablespace "
        "oid, relpages integer, reltuples real, relallvisible integer, reltoastrelid oid, relhasindex boolean, relisshared boolean, "
        "relpersistence char1, relkind char1, relnatts integer, relchecks integer, relhasrules boolean, relhastriggers boolean, "
        "relhassubclass boolean, relrowsecurity boolean, relforcerowsecurity boolean, relispopulated boolean, relreplident char1, "
        "relispartition boolean, relrewrite oid, relfrozenxid oid, relminmxid oid, relacl text[], reloptions text[], relpartbound text"
    ),
    "pg_collation": (
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char1, collisdeterministic boolean, collencoding "
        "integer, collcollate text, collctype text, colliculocale text, collversion text"
    ),
    "pg_constraint": (
        "oid oid, conname name, connamespace oid, contype char1, condeferrable boolean, condeferred boolean, convalidated boolean, "
        "conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype char1, confdeltype char1, confmatchtype "
        "char1, conislocal boolean, coninhcount integer, connoinherit boolean, conkey int2[], confkey int2[], conpfeqop oid[], "
        "conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin text"
    ),
    "pg_conversion": (
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding integer, contoencoding integer, conproc regproc, "
        "condefault boolean"
    ),
    "pg_cursors": "name text, statement text, is_holdable boolean, is_binary boolean, is_scrollable boolean, creation_time timestamptz",
    "pg_database": (
        "oid oid, datname name, datdba oid, encoding integer, datlocprovider char1, datistemplate boolean, datallowconn boolean, "
        "datconnlimit integer, datfrozenxid oid, datminmxid oid, dattablespace oid, datcollate text, datctype text, daticulocale text, "
        "datcollversion text, datacl text[]"
    ),
    "pg_db_role_setting": "setdatabase oid, setrole oid, setconfig text[]",
    "pg_default_acl": "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char1, defaclacl text[]",
    "pg_depend": "classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid, refobjsubid integer, deptype char1",
    "pg_description": "objoid oid, classoid oid, objsubid integer, description text",
    "pg_enum": "oid oid, enumtypid oid, enumsortorder real, enumlabel name",
    "pg_event_trigger": "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char1, evttags text[]",
    "pg_extension": (
        "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable boolean, extversion text, extconfig oid[], extcondition "
        "text[]"
    ),
    "pg_foreign_data_wrapper": "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl text[], fdwoptions text[]",
    "pg_foreign_server": (
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl text[], srvoptions text[]"
    ),
    "pg_foreign_table": "ftrelid oid, ftserver oid, ftoptions text[]",
    "pg_index": (
        "indexrelid oid, indrelid oid, indnatts integer, indnkeyatts integer, indisunique boolean, indnullsnotdistinct boolean, "
        "indisprimary boolean, indisexclusion boolean, indimmediate boolean, indisclustered boolean, indisvalid boolean, indcheckxmin "
        "boolean, indisready boolean, indislive boolean, indisreplident boolean, indkey int2vector, indcollation oidvector, indclass "
        "oidvector, indoption int2vector, indexprs text, indpred text"
    ),
    "pg_indexes": "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
    "pg_inherits": "inhrelid oid, inhparent oid, inhseqno integer, inhdetachpending boolean",
    "pg_init_privs": "objoid oid, classoid oid, objsubid integer, privtype char1, initprivs text[]",
    "pg_language": (
        "oid oid, lanname name, lanowner oid, lanispl boolean, lanpltrusted boolean, lanplcallfoid oid, laninline oid, lanvalidator "
        "oid, lanacl text[]"
    ),
    "pg_largeobject_metadata": "oid oid, lomowner oid, lomacl text[]",
    "pg_matviews": (
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes boolean, ispopulated boolean, definition text"
    ),
    "pg_namespace": "oid oid, nspname name, nspowner oid, nspacl text[]",
    "pg_opclass": (
        "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault boolean, "
        "opckeytype oid"
    ),
    "pg_operator": (
        "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char1, oprcanmerge boolean, oprcanhash boolean, oprleft oid, "
        "oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc"
    ),
    "pg_opfamily": "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid",
    "pg_parameter_acl": "oid oid, parname text, paracl text[]",
    "pg_partitioned_table": (
        "partrelid oid, partstrat char1, partnatts integer, partdefid oid, partattrs int2vector, partclass oidvector, partcollation "
        "oidvector, partexprs text"
    ),
    "pg_policy": (
        "oid oid, polname name, polrelid oid, polcmd char1, polpermissive boolean, polroles oid[], polqual text, polwithcheck text"
    ),
    "pg_proc": (
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost real, prorows real, provariadic oid, prosupport "
        "regproc, prokind char1, prosecdef boolean, proleakproof boolean, proisstrict boolean, proretset boolean, provolatile char1, "
        "proparallel char1, pronargs integer, pronargdefaults integer, prorettype oid, proargtypes oidvector, proallargtypes oid[], "
        "proargmodes text[], proargnames text[], proargdefaults text, protrftypes oid[], prosrc text, probin text, prosqlbody text, "
        "proconfig text[], proacl text[]"
    ),
    "pg_publication": (
        "oid oid, pubname name, pubowner oid, puballtables boolean, pubinsert boolean, pubupdate boolean, pubdelete boolean, "
        "pubtruncate boolean, pubviaroot boolean"
    ),
    "pg_publication_namespace": "oid oid, pnpubid oid, pnnspid oid",
    "pg_publication_rel": "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2vector",
    "pg_range": (
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical regproc, rngsubdiff regproc"
    ),
    "pg_rewrite": (
        "oid oid, rulename name, ev_class oid, ev_type char1, ev_enabled char1, is_instead boolean, ev_qual text, ev_action text"
    ),
    "pg_roles": (
        "rolname name, rolsuper boolean, rolinherit boolean, rolcreaterole boolean, rolcreatedb boolean, rolcanlogin boolean, "
        "rolreplication boolean, rolconnlimit integer, rolpassword text, rolvaliduntil timestamptz, rolbypassrls boolean, rolconfig "
        "text[], oid oid"
    ),
    "pg_seclabel": "objoid oid, classoid oid, objsubid integer, provider text, label text",
    "pg_sequence": (
        "seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint, seqmin bigint, seqcache bigint, seqcycle boolean"
    ),
    "pg_sequences": (
        "schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value bigint, min_value bigint, max_value "
        "bigint, increment_by bigint, cycle boolean, cache_size bigint, last_value bigint"
    ),
    "pg_settings": (
        "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text, source text, "
        "min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, sourceline integer, "
        "pending_restart boolean"
    ),
    "pg_shdepend": "dbid oid, classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid, deptype char1",
    "pg_shdescription": "objoid oid, classoid oid, description text",
    "pg_shseclabel": "objoid oid, classoid oid, provider text, label text",
    "pg_statistic_ext": (
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget integer, stxkeys int2vector, stxkind "
        "text[], stxexprs text"
    ),
    "pg_subscription": (
        "oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled boolean, subbinary boolean, substream boolean, "
        "subtwophasestate char1, subdisableonerr boolean, subconninfo text, subslotname name, subsynccommit text, subpublications "
        "text[]"
    ),
    "pg_tables": (
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes boolean, hasrules boolean, hastriggers boolean, "
        "rowsecurity boolean"
    ),
    "pg_tablespace": "oid oid, spcname name, spcowner oid, spcacl text[], spcoptions text[]",
    "pg_transform": "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc",
    "pg_trigger": (
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype integer, tgenabled char1, tgisinternal boolean, "
        "tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable boolean, tginitdeferred boolean, tgnargs integer, tgattr "
        "int2vector, tgargs text, tgqual text, tgoldtable name, tgnewtable name"
    ),
    "pg_ts_config": "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid",
    "pg_ts_config_map": "mapcfg oid, maptokentype integer, mapseqno integer, mapdict oid",
    "pg_ts_dict": "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
    "pg_ts_parser": (
        "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, prsend regproc, prsheadline regproc, prslextype "
        "regproc"
    ),
    "pg_ts_template": "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc",
    "pg_type": (
        "oid oid, typname name, typnamespace oid, typowner oid, typlen integer, typbyval boolean, typtype char1, typcategory char1, "
        "typispreferred boolean, typisdefined boolean, typdelim char1, typrelid oid, typsubscript regproc, typelem oid, typarray oid, "
        "typinput regproc, typoutput regproc, typreceive regproc, typsend regproc, typmodin regproc, typmodout regproc, typanalyze "
        "regproc, typalign char1, typstorage char1, typnotnull boolean, typbasetype oid, typtypmod integer, typndims integer, "
        "typcollation oid, typdefaultbin text, typdefault text, typacl text[]"
    ),
    "pg_user": (
        "usename name, usesysid oid, usecreatedb boolean, usesuper boolean, userepl boolean, usebypassrls boolean, passwd text, "
        "valuntil timestamptz, useconfig text[]"
    ),
    "pg_user_mappings": "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]",
    "pg_views": "schemaname name, viewname name, viewowner name, definition text",
}
"""Maps the name of each to its columns, each with its type. `regproc` is the name of a function, ``-`` without one."""
_OF_TYPES: dict[str, Value] = {
    "oid": 0, "integer": 0, "bigint": 0, "real": 0.0, "boolean": 0, "char1": "", "name": "", "int2vector": "", "oidvector": "",
    "regproc": "-",
}  # fmt: skip
"""The value of a column that does not apply, by its type; NULL for the other types."""
_OF_COLUMNS: dict[str, Value] = {
    "attcacheoff": -1, "attislocal": 1, "attstattarget": -1, "atttypmod": -1, "collencoding": -1, "collisdeterministic": 1,
    "confdeltype": " ", "confmatchtype": " ", "confupdtype": " ", "conislocal": 1, "connoinherit": 1, "convalidated": 1,
    "datallowconn": 1, "datconnlimit": -1, "indimmediate": 1, "indislive": 1, "indisready": 1, "indisvalid": 1,
    "relispopulated": 1, "relpersistence": "p", "relreplident": "n", "reltuples": -1.0, "rolinherit": 1, "tgenabled": "O",
    "typdelim": ",", "typisdefined": 1, "typtypmod": -1,
}  # fmt: skip
"""The value of a column that does not apply, where it is not that of its type."""


def columns_of(columns: str) -> list[tuple[str, str]]:
    """(name, type) of each column of a table."""
    return [(parts[0], parts[1]) for parts in (column.split() for column in columns.split(","))]


_DEFAULTS: dict[str, dict[str, Value]] = {
    table: {name: _OF_COLUMNS.get(name, _OF_TYPES.get(kind)) for name, kind in columns_of(columns)}
    for table, columns in SYSTEM_TABLES.items()
}


def system_row(table: str, **values: Value) -> Row:
    """A row of a table. The columns without a value have the one that PostgreSQL has where a column does not apply."""
    row = _DEFAULTS[table] | values
    assert len(row) == len(_DEFAULTS[table]), f"{table} has no columns {sorted(values.keys() - _DEFAULTS[table].keys())}"
    return tuple(row.values())
