#!/bin/sh
# Adds the language to Helix's configuration, once, and copies the queries. `hx --grammar build` then builds the parser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
helix=${XDG_CONFIG_HOME:-$HOME/.config}/helix
queries=$helix/runtime/queries/tile

mkdir -p "$queries"
# Helix has names of its own for some colours.
for query in highlights folds tags; do
    sed -e 's/@number/@constant.numeric/g' -e 's/@string\.escape/@constant.character.escape/g' -e 's/@module/@namespace/g' \
        -e 's/@property/@variable.other.member/g' "$repository/editors/tree-sitter-tile/queries/$query.scm" >"$queries/$query.scm"
done
cp "$here"/queries/*.scm "$queries/"
if ! grep -q '^\[language-server.ptoc\]' "$helix/languages.toml" 2>/dev/null; then
    sed "s#\"PTOC/#\"$repository/#; s# \# PTOC is where.*##" "$here/languages.toml" >>"$helix/languages.toml"
fi
echo "added to $helix/languages.toml; now run: hx --grammar build"
