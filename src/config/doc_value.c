/* The tree of values that a document is; see doc_value.h. */
#include "config/doc_value.h"

#include <stdlib.h>
#include <string.h>

#include "topo/memory.h"

static char *copy_text(const char *text, size_t length)
{
    char *copy = gw_memory_zeroed(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

struct gw_doc_value *gw_doc_value_new(struct gw_doc_value *parent, enum gw_doc_value_kind kind,
                                      const char *key, uint32_t line)
{
    struct gw_doc_value *value = gw_memory_zeroed(1, sizeof(*value));
    value->kind = kind;
    value->key = key ? copy_text(key, strlen(key)) : NULL;
    value->parent = parent;
    value->line = line;
    value->override = parent ? parent->override : NULL;
    return value;
}

void gw_doc_value_append(struct gw_doc_value *parent, struct gw_doc_value *item)
{
    parent->items =
        gw_memory_grow(parent->items, &parent->room, parent->count + 1, sizeof(parent->items[0]));
    parent->items[parent->count++] = item;
}

void gw_doc_value_set_text(struct gw_doc_value *value, const char *text, size_t length)
{
    value->kind = GW_DOC_VALUE_SCALAR;
    value->text = copy_text(text, length);
}

/* Recursion is bounded by 2 * GW_DOC_DEPTH_MAX. */
void gw_doc_value_free(struct gw_doc_value *value)
{
    if (!value)
        return;
    gw_doc_value_clear(value);
    free(value->key);
    free(value);
}

void gw_doc_value_clear(struct gw_doc_value *value)
{
    for (uint32_t i = 0; i < value->count; i++)
        gw_doc_value_free(value->items[i]);
    free(value->items);
    free(value->text);
    value->items = NULL;
    value->text = NULL;
    value->count = value->room = 0;
    value->kind = GW_DOC_VALUE_SCALAR;
}

struct gw_doc_value *gw_doc_value_get(const struct gw_doc_value *map, const char *key)
{
    if (!map || map->kind != GW_DOC_VALUE_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i]->key, key) == 0)
            return map->items[i];
    return NULL;
}

/* Writes the dotted path of a value; list items by number. Recursion: 2 * GW_DOC_DEPTH_MAX. */
size_t gw_doc_value_path(const struct gw_doc_value *value, char *path, size_t size)
{
    if (!value->parent)
        return 0;
    size_t used = gw_doc_value_path(value->parent, path, size);
    const char *dot = used ? "." : "";
    if (used >= size)
        return used;
    if (value->key)
        return used + (size_t)snprintf(path + used, size - used, "%s%s", dot, value->key);
    uint32_t index = 0;
    while (value->parent->items[index] != value)
        index++;
    return used + (size_t)snprintf(path + used, size - used, "%s%u", dot, index);
}

void gw_doc_text_write(const char *text, FILE *out)
{
    /* Plain where nothing can be misread; YAML's double quotes otherwise. */
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./+-";
    if (*text && *text != '-' && text[strspn(text, plain)] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text < ' ')
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

/* Writes in flow style, on one line: nothing that is echoed is long. */
void gw_doc_value_write(const struct gw_doc_value *value, FILE *out)
{
    if (value->kind == GW_DOC_VALUE_SCALAR) {
        gw_doc_text_write(value->text, out);
        return;
    }
    fputc(value->kind == GW_DOC_VALUE_MAP ? '{' : '[', out);
    for (uint32_t i = 0; i < value->count; i++) {
        if (i)
            fputs(", ", out);
        if (value->items[i]->key) {
            gw_doc_text_write(value->items[i]->key, out);
            fputs(": ", out);
        }
        gw_doc_value_write(value->items[i], out);
    }
    fputc(value->kind == GW_DOC_VALUE_MAP ? '}' : ']', out);
}
