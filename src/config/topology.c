/*
 * The scenario's `topology:`: a kind with its parameters, or a list of nodes and links, and
 * overrides of single links.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"
#include "topo/links.h"
#include "topo/memory.h"

/* What can be said of a link in `links:` and in `override:`. */
struct link_options {
    uint64_t rate_bps;  /* 0: not said */
    gw_time latency;    /* meaningful when the key is there */
    uint64_t queue;     /* 0: not said */
    uint32_t direction; /* enum link_direction */
};

enum link_direction {
    DIRECTION_BOTH,
    DIRECTION_FORWARD, /* from the first node to the second */
};

static const struct gw_param link_params[] = {
    {.name = "rate", .type = GW_PARAM_RATE, .offset = offsetof(struct link_options, rate_bps)},
    {.name = "latency", .type = GW_PARAM_TIME, .offset = offsetof(struct link_options, latency)},
    {.name = "queue", .type = GW_PARAM_BYTES, .offset = offsetof(struct link_options, queue)},
    {.name = "direction",
     .type = GW_PARAM_ENUM,
     .offset = offsetof(struct link_options, direction),
     .initial = "both",
     .choices = "both|forward"},
};

/* An item of `override:`; one of `links:` has no direction, which is the last parameter. */
static const struct gw_algo override_table = {
    .name = "override",
    .params = link_params,
    .param_count = sizeof(link_params) / sizeof(link_params[0]),
    .cfg_size = sizeof(struct link_options),
};
static const struct gw_algo link_table = {
    .name = "links",
    .params = link_params,
    .param_count = sizeof(link_params) / sizeof(link_params[0]) - 1,
    .cfg_size = sizeof(struct link_options),
};

static const char *const link_others[] = {"between", NULL};

/* Reads an item of either list, and finds its `between`. */
static int read_link(struct gw_loader *loader, const struct gw_doc_value *item,
                     const struct gw_algo *table, struct link_options *options,
                     const struct gw_doc_value **between)
{
    const struct gw_document *document = &loader->document;
    if (item->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "expected a map such as {between: [tor0, agg1], rate: 100Gbps}");
    const struct gw_schema schema = {
        .parts = {{table, options}}, .part_count = 1, .others = link_others};
    int error = gw_schema_read(document, item, &schema);
    if (error)
        return error;
    if (options->queue > UINT32_MAX)
        return gw_document_error(document, gw_doc_value_get(item, "queue"), GW_ERR_RANGE,
                                 "more than %u bytes", UINT32_MAX);
    *between = gw_doc_value_get(item, "between");
    if (!*between)
        return gw_document_error(document, item, GW_ERR_INVALID, "between is missing");
    if ((*between)->kind != GW_DOC_VALUE_LIST || (*between)->count < 2 ||
        (*between)->items[0]->kind != GW_DOC_VALUE_SCALAR ||
        (*between)->items[1]->kind != GW_DOC_VALUE_SCALAR)
        return gw_document_error(document, *between, GW_ERR_INVALID,
                                 "expected the names of two nodes, such as [tor0, agg1]");
    return GW_OK;
}

/* The list `key` of the kind "links"; absent is the same as empty. */
static int get_list(struct gw_loader *loader, const struct gw_doc_value *section, const char *key,
                    const struct gw_doc_value **list)
{
    static const struct gw_doc_value empty = {.kind = GW_DOC_VALUE_LIST};
    *list = gw_doc_value_get(section, key);
    if (!*list)
        *list = &empty;
    if ((*list)->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(&loader->document, *list, GW_ERR_INVALID, "expected a list");
    return GW_OK;
}

/* Lists the names; *names is to be freed. */
static int read_names(struct gw_loader *loader, const struct gw_doc_value *section, const char *key,
                      const char ***names, uint32_t *count)
{
    const struct gw_doc_value *list;
    int error = get_list(loader, section, key, &list);
    if (error)
        return error;
    *names = gw_memory_zeroed(list->count, sizeof(**names));
    *count = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        (*names)[i] = gw_schema_text(&loader->document, list->items[i]);
        if (!(*names)[i])
            return GW_ERR_INVALID;
    }
    return GW_OK;
}

static int read_links(struct gw_loader *loader, const struct gw_doc_value *section,
                      const struct gw_topo_fabric *fabric, struct gw_topo_links_item **links,
                      uint32_t *count)
{
    const struct gw_doc_value *list;
    int error = get_list(loader, section, "links", &list);
    if (error)
        return error;
    *links = gw_memory_zeroed(list->count, sizeof(**links));
    *count = list->count;
    for (uint32_t i = 0; i < list->count && !error; i++) {
        struct link_options options;
        const struct gw_doc_value *between;
        error = read_link(loader, list->items[i], &link_table, &options, &between);
        if (error)
            break;
        bool has_latency = gw_doc_value_get(list->items[i], "latency") != NULL;
        (*links)[i] = (struct gw_topo_links_item){
            .ends = {between->items[0]->text, between->items[1]->text},
            .rate_bps = options.rate_bps ? options.rate_bps : fabric->rate_bps,
            .latency = has_latency ? options.latency : fabric->latency,
            .queue_bytes = (uint32_t)options.queue,
        };
        if (between->count != 2)
            error = gw_document_error(&loader->document, between, GW_ERR_INVALID,
                                      "expected the names of two nodes");
    }
    return error;
}

static int build(struct gw_loader *loader, const struct gw_doc_value *section,
                 const struct gw_topo_kind *kind, const void *cfg)
{
    char why[GW_WHY_MAX];
    int error = kind->build(&loader->scenario->topo, cfg, why, sizeof(why));
    if (!error)
        error = gw_topo_finish(&loader->scenario->topo, why, sizeof(why));
    return error ? gw_schema_blame(&loader->document, section, error, why) : GW_OK;
}

/* Fills the lists of the kind "links", which are borrowed from the document, and builds. */
static int build_links(struct gw_loader *loader, const struct gw_doc_value *section,
                       const struct gw_topo_kind *kind, struct gw_topo_links *cfg)
{
    const char **hosts = NULL, **switches = NULL;
    struct gw_topo_links_item *links = NULL;
    int error = read_names(loader, section, "hosts", &hosts, &cfg->host_count);
    if (!error)
        error = read_names(loader, section, "switches", &switches, &cfg->switch_count);
    if (!error)
        error = read_links(loader, section, &cfg->fabric, &links, &cfg->link_count);
    cfg->hosts = hosts;
    cfg->switches = switches;
    cfg->links = links;
    if (!error)
        error = build(loader, section, kind, cfg);
    free(links);
    free(switches);
    free(hosts);
    return error;
}

const struct gw_topo_port *gw_link_pick_port(const struct gw_topo *topo,
                                             const struct gw_link_pick *pick, uint32_t i)
{
    return &topo->ports[topo->nodes[pick->from].first_port + pick->first + i];
}

/* Finds the ports between two nodes, which are neighbours because ports are numbered by peer. */
static void find_ports(const struct gw_topo *topo, uint32_t peer, struct gw_link_pick *pick)
{
    const struct gw_topo_node *node = &topo->nodes[pick->from];
    pick->count = 0;
    for (uint32_t p = 0; p < node->port_count; p++)
        if (topo->ports[node->first_port + p].peer == peer) {
            if (pick->count == 0)
                pick->first = p;
            pick->count++;
        }
}

int gw_loader_pick_links(struct gw_loader *loader, const struct gw_doc_value *value,
                         struct gw_link_pick *pick)
{
    const struct gw_document *document = &loader->document;
    const struct gw_topo *topo = &loader->scenario->topo;
    if (value->kind != GW_DOC_VALUE_LIST || value->count < 2 || value->count > 3)
        return gw_document_error(document, value, GW_ERR_INVALID,
                                 "expected two nodes that are linked, such as [tor0, agg1]");
    uint32_t ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = gw_schema_text(document, value->items[i]);
        if (!name)
            return GW_ERR_INVALID;
        ends[i] = gw_topo_find(topo, name);
        if (ends[i] == UINT32_MAX)
            return gw_document_error(document, value->items[i], GW_ERR_UNKNOWN,
                                     "no node is called %s", name);
    }
    pick->from = ends[0];
    find_ports(topo, ends[1], pick);
    if (pick->count == 0)
        return gw_document_error(document, value, GW_ERR_UNKNOWN, "no link between %s and %s",
                                 topo->nodes[ends[0]].name, topo->nodes[ends[1]].name);
    if (value->count == 2)
        return GW_OK;
    const char *text = gw_schema_text(document, value->items[2]);
    uint64_t index;
    if (!text || gw_parse_count(text, &index) != GW_OK || index >= pick->count)
        return gw_document_error(document, value, GW_ERR_RANGE,
                                 "the third item must be the number of one of %u links, from 0",
                                 pick->count);
    pick->first += (uint32_t)index;
    pick->count = 1;
    return GW_OK;
}

static int apply_override(struct gw_loader *loader, const struct gw_doc_value *item)
{
    struct gw_topo *topo = &loader->scenario->topo;
    struct link_options options;
    const struct gw_doc_value *between;
    struct gw_link_pick pick;
    int error = read_link(loader, item, &override_table, &options, &between);
    if (!error)
        error = gw_loader_pick_links(loader, between, &pick);
    if (error)
        return error;
    const struct gw_doc_value *latency = gw_doc_value_get(item, "latency");
    bool both = options.direction == DIRECTION_BOTH;
    if (latency && !both)
        return gw_document_error(&loader->document, latency, GW_ERR_INVALID,
                                 "a link's latency is the same in both directions");
    for (uint32_t i = 0; i < pick.count; i++) {
        const struct gw_topo_port *port = gw_link_pick_port(topo, &pick, i);
        struct gw_link *link = &topo->links[port->link];
        if (latency)
            link->latency = options.latency;
        for (uint32_t side = 0; side < 2; side++) {
            if (side != port->side && !both)
                continue;
            if (options.rate_bps)
                link->side[side].rate_bps = options.rate_bps;
            if (options.queue)
                link->side[side].queue_bytes = (uint32_t)options.queue;
        }
    }
    return GW_OK;
}

static int apply_overrides(struct gw_loader *loader, const struct gw_doc_value *section)
{
    const struct gw_doc_value *list;
    int error = get_list(loader, section, "override", &list);
    for (uint32_t i = 0; i < list->count && !error; i++)
        error = apply_override(loader, list->items[i]);
    return error;
}

static void write_echo(const struct gw_doc_value *section, const char *const *keys, FILE *out)
{
    for (; *keys; keys++) {
        const struct gw_doc_value *value = gw_doc_value_get(section, *keys);
        if (!value)
            continue;
        fprintf(out, "  %s: ", *keys);
        gw_doc_value_write(value, out);
        fputc('\n', out);
    }
}

int gw_loader_topology(struct gw_loader *loader)
{
    static const char *const others[] = {"kind", "override", NULL};
    static const char *const lists[] = {"kind", "override", "hosts", "switches", "links", NULL};
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "topology");
    const struct gw_algo *algo =
        gw_schema_kind(&loader->document, section, "topology", &gw_topo_registry, NULL);
    if (!algo)
        return GW_ERR_INVALID;
    const struct gw_topo_kind *kind = (const struct gw_topo_kind *)algo;
    bool has_lists = strcmp(algo->name, "links") == 0;
    union gw_algo_cfg cfg;
    const struct gw_schema schema = {
        .parts = {{algo, &cfg, "preset"}}, .part_count = 1, .others = has_lists ? lists : others};
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error)
        error = has_lists ? build_links(loader, section, kind, (struct gw_topo_links *)&cfg)
                          : build(loader, section, kind, &cfg);
    if (!error)
        error = apply_overrides(loader, section);
    if (error)
        return error;
    if (gw_topo_route(&loader->scenario->topo) != GW_OK)
        return gw_document_error(&loader->document, section, GW_ERR_NO_ROOM,
                                 "a switch would need too many different sets of next hops");
    if (loader->out) {
        fprintf(loader->out, "topology:\n  kind: %s\n", algo->name);
        gw_schema_write(&schema, "  ", loader->out);
        write_echo(section, schema.others + 1, loader->out);
    }
    return GW_OK;
}
