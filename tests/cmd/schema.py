# SPDX-License-Identifier: BSD-2-Clause
"""schema.py SCHEMA JSON: checks one against the other, and that every member is described.

Knows the keywords that docs/json uses and refuses any other, so that none is passed over.
"""
import json
import sys

ABOUT = {"$schema", "$id", "$defs", "title", "description"}
KNOWN = ABOUT | {"$ref", "type", "const", "enum", "required", "properties", "items", "minItems",
                 "minimum", "maximum", "additionalProperties", "anyOf"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[name])


def check(schema, value, root, where, say):
    unknown = set(schema) - KNOWN
    if unknown:
        say(where, f"the schema uses {', '.join(sorted(unknown))}, which schema.py does not know")
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        check(target, value, root, where, say)
    if "anyOf" in schema:
        check_choice(schema["anyOf"], value, root, where, say)
    if "const" in schema and value != schema["const"]:
        say(where, f"{value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        say(where, f"{value!r} is none of {schema['enum']}")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        say(where, f"{value!r} is no {' or '.join(types)}")
        return
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            say(where, f"{value} is out of range")
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        check_object(schema, value, root, where, say)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            say(where, f"fewer than {schema['minItems']} items")
        for index, item in enumerate(value):
            check(schema.get("items", {}), item, root, f"{where}[{index}]", say)


def check_choice(choices, value, root, where, say):
    for schema in choices:
        failures = []
        check(schema, value, root, where, lambda *failure: failures.append(failure))
        if not failures:
            return
    say(where, "fits none of the choices")


def check_object(schema, value, root, where, say):
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key in schema.get("required", []):
        if key not in value:
            say(where, f"'{key}' is missing")
    for key, item in value.items():
        if key in properties:
            check(properties[key], item, root, f"{where}.{key}", say)
        elif isinstance(others, dict):
            check(others, item, root, f"{where}.{key}", say)
        else:
            say(where, f"'{key}' is not in the schema")
        if item is None and f"{key}_reason" in properties and not value.get(f"{key}_reason"):
            say(where, f"'{key}' is null without a reason")


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        value = json.load(file, parse_constant=refuse_constant)
    failures = []
    check(schema, value, schema, "", lambda where, what: failures.append(f"{where or '.'}: {what}"))
    print("\n".join(failures[:20]))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
