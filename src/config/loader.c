/* What the files that read sections share; see loader.h. */
#include "config/loader.h"

const struct gw_doc_value *gw_loader_place(const struct gw_doc_value *section, const char *key)
{
    const struct gw_doc_value *value = gw_doc_value_get(section, key);
    return value ? value : section;
}

void gw_loader_write(const struct gw_loader *loader, const char *name, const char *kind,
                     const struct gw_schema *schema)
{
    if (!loader->out)
        return;
    fprintf(loader->out, "%s:\n", name);
    if (kind)
        fprintf(loader->out, "  kind: %s\n", kind);
    gw_schema_write(schema, "  ", loader->out);
}
