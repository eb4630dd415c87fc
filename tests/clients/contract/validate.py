"""Checks that a document is valid OpenAPI 3.1, and that its examples match their schemas.

    python validate.py openapi.yaml
"""

import sys

import jsonschema
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

# The formats of JSON Schema, and of the OpenAPI registry.
FORMATS = {"date-time", "uri", "binary"}


class UniqueLoader(yaml.SafeLoader):
    """Rejects mappings with duplicate keys."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"there twice: {twice}", node.start_mark)
        return super().construct_mapping(node, deep)


class Document:
    def __init__(self, root):
        self.root = root

    def resolved(self, value):
        while isinstance(value, dict) and "$ref" in value:
            place = self.root
            for part in value["$ref"].removeprefix("#/").split("/"):
                place = place[part.replace("~1", "/").replace("~0", "~")]
            value = place
        return value

    def check(self, schema, value, place):
        # References are relative to the whole document.
        schema = {**self.root, **schema} if "$ref" in schema else {**self.root, "allOf": [schema]}
        validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        errors = [f"{place}: {error.json_path}: {error.message}" for error in validator.iter_errors(value)]
        return errors

    def walk(self, value, place=""):
        yield place, value
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, member in items:
            # The value of an example is not part of the document.
            if name not in ("example", "value") or "properties" in place.rsplit("/", 1)[-1]:
                yield from self.walk(member, f"{place}/{name}")

    def examples(self, holder):
        if "example" in holder:
            yield "example", holder["example"]
        for name, example in (holder.get("examples") or {}).items():
            yield name, self.resolved(example)["value"]


def main(path):
    with open(path, encoding="utf-8") as file:
        root = yaml.load(file, UniqueLoader)
    OpenAPIV31SpecValidator(root).validate()
    document, errors, examples = Document(root), [], 0
    for place, holder in document.walk(root):
        if not isinstance(holder, dict):
            continue
        if "schema" in holder:
            for name, value in document.examples(holder):
                errors += document.check(holder["schema"], value, f"{place} {name}")
                examples += 1
        if isinstance(holder.get("format"), str) and holder["format"] not in FORMATS:
            errors.append(f"{place}: there is no format {holder['format']}")
    for name, schema in root["components"]["schemas"].items():
        try:
            Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            errors.append(f"{name}: {error.message}")
    if errors:
        sys.exit("\n".join(errors))
    print(f"{examples} examples are what their schemas say")


if __name__ == "__main__":
    main(*sys.argv[1:])
