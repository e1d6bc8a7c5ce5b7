/*
 * The section `workload`: one entry, or a list of them. Each is of a kind of the registry, which is
 * read by the kind's table and then makes flows and jobs; some kinds have a list besides, whose
 * items are read by a table of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "config/loader.h"
#include "topo/memory.h"

enum {
    DIRECTORY_MAX = 4096, /* bytes of the scenario's folder name */
};

/* Streams of the run's seed: workload entry i has this number plus i; nodes count from 0. */
#define WORKLOAD_STREAM (UINT64_C(1) << 40)

/* The folder of the scenario file. */
static void directory_of(const char *file, char directory[DIRECTORY_MAX])
{
    const char *slash = strrchr(file, '/');
    if (!slash)
        snprintf(directory, DIRECTORY_MAX, ".");
    else
        snprintf(directory, DIRECTORY_MAX, "%.*s", slash == file ? 1 : (int)(slash - file), file);
}

/* Nothing that an entry has added may start too late. */
static int check_starts(const struct gw_loader *loader, const struct gw_doc_value *entry,
                        uint32_t first_flow, uint32_t first_job)
{
    const struct gw_workload *workload = &loader->scenario->workload;
    gw_time last = 0;
    for (uint32_t i = first_flow; i < workload->flow_count; i++)
        if (workload->flows[i].start != GW_TIME_NEVER && workload->flows[i].start > last)
            last = workload->flows[i].start;
    for (uint32_t i = first_job; i < workload->job_count; i++)
        if (workload->jobs[i].start > last)
            last = workload->jobs[i].start;
    if (last <= GW_WORKLOAD_TIME_MAX)
        return GW_OK;
    return gw_schema_blame(&loader->document, entry, GW_ERR_RANGE,
                           "start: nothing may start later than after 20 days (1728000s)");
}

/* Every flow that an entry has added must be possible. */
static int check_flows(const struct gw_loader *loader, const struct gw_doc_value *entry,
                       uint32_t first)
{
    const struct gw_scenario *scenario = loader->scenario;
    const struct gw_topo *topo = &scenario->topo;
    const uint64_t bytes_max = (UINT64_C(1) << 32) - 2; /* packets that a flow can number */
    for (uint32_t i = first; i < scenario->workload.flow_count; i++) {
        const struct gw_flow_spec *flow = &scenario->workload.flows[i];
        if (flow->src >= topo->host_count || flow->dst >= topo->host_count ||
            flow->src == flow->dst)
            return gw_document_error(&loader->document, entry, GW_ERR_INVALID,
                                     "flow %u from host %u to host %u is not between two of the "
                                     "%u hosts",
                                     flow->id, flow->src, flow->dst, topo->host_count);
        if (gw_topo_path(topo, flow->src, flow->dst, 1, 1).hops == 0)
            return gw_document_error(&loader->document, entry, GW_ERR_INVALID,
                                     "no route from %s to %s", topo->nodes[flow->src].name,
                                     topo->nodes[flow->dst].name);
        if (flow->bytes / scenario->host.mtu >= bytes_max)
            return gw_document_error(&loader->document, entry, GW_ERR_RANGE,
                                     "a flow of %llu bytes has more than 2^32 packets",
                                     (unsigned long long)flow->bytes);
    }
    return GW_OK;
}

/* The items of a kind's list, as options one after the other. */
struct items {
    const struct gw_algo *table;      /* NULL: the kind has no list */
    const struct gw_doc_value *value; /* NULL: the entry has none */
    unsigned char *options;
    uint32_t count;
};

static struct gw_schema item_schema(const struct items *items, uint32_t i)
{
    return (struct gw_schema){
        .parts = {{items->table, items->options + (size_t)i * items->table->cfg_size, NULL}},
        .part_count = 1,
    };
}

/* Reads the list of an entry; items->options is to be freed, also after an error. */
static int read_items(const struct gw_loader *loader, const struct gw_doc_value *entry,
                      struct items *items)
{
    if (!items->table || !entry || entry->kind != GW_DOC_VALUE_MAP)
        return GW_OK;
    const struct gw_doc_value *value = gw_doc_value_get(entry, items->table->name);
    items->value = value;
    if (!value)
        return GW_OK;
    if (value->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(&loader->document, value, GW_ERR_INVALID, "expected a list");
    items->count = value->count;
    items->options = gw_memory_zeroed(value->count, items->table->cfg_size);
    int error = GW_OK;
    for (uint32_t i = 0; i < value->count && !error; i++) {
        const struct gw_schema schema = item_schema(items, i);
        error = value->items[i]->kind == GW_DOC_VALUE_MAP
                    ? gw_schema_read(&loader->document, value->items[i], &schema)
                    : gw_document_error(&loader->document, value->items[i], GW_ERR_INVALID,
                                        "expected a map");
    }
    return error;
}

static void write_entry(const struct gw_loader *loader, const struct gw_algo *algo,
                        const struct gw_schema *schema, const struct items *items)
{
    if (!loader->out)
        return;
    fprintf(loader->out, "  - kind: %s\n", algo->name);
    gw_schema_write(schema, "    ", loader->out);
    if (items->count)
        fprintf(loader->out, "    %s:\n", items->table->name);
    for (uint32_t i = 0; i < items->count; i++) {
        const struct gw_schema item = item_schema(items, i);
        fprintf(loader->out, "      -\n");
        gw_schema_write(&item, "        ", loader->out);
    }
}

/* Adds what an entry says, whose options have been read. */
static int generate(struct gw_loader *loader, const struct gw_doc_value *entry, uint32_t index,
                    const struct gw_schema *schema, const struct items *items)
{
    struct gw_scenario *scenario = loader->scenario;
    const struct gw_workload_kind *kind =
        (const struct gw_workload_kind *)(const void *)schema->parts[0].algo;
    char why[GW_WHY_MAX], directory[DIRECTORY_MAX];
    directory_of(loader->document.file, directory);
    struct gw_workload_ctx ctx = {
        .topo = &scenario->topo,
        .directory = directory,
        .prng = gw_prng_derive(scenario->seed, WORKLOAD_STREAM + index),
        .items = items->options,
        .item_count = items->count,
        .item = items->count,
        .why = why,
        .why_size = sizeof(why),
    };
    int error = kind->generate(&scenario->workload, schema->parts[0].cfg, &ctx);
    if (!error)
        return GW_OK;
    bool is_item = ctx.item < items->count;
    return gw_schema_blame(&loader->document, is_item ? items->value->items[ctx.item] : entry,
                           error, why);
}

static int load_entry(struct gw_loader *loader, const struct gw_doc_value *entry, uint32_t index)
{
    const struct gw_workload *workload = &loader->scenario->workload;
    const struct gw_algo *algo =
        gw_schema_kind(&loader->document, entry, "workload", &gw_workload_registry, NULL);
    if (!algo)
        return GW_ERR_INVALID;
    GW_ASSERT(algo->cfg_size <= sizeof(union gw_algo_cfg));
    union gw_algo_cfg cfg;
    struct items items = {.table = ((const struct gw_workload_kind *)(const void *)algo)->item};
    const char *others[] = {"kind", items.table ? items.table->name : NULL, NULL};
    const struct gw_schema schema = {
        .parts = {{algo, &cfg, "preset"}}, .part_count = 1, .others = others};
    uint32_t first = workload->flow_count, first_job = workload->job_count;
    uint32_t first_tenant = workload->tenant_count;
    int error = gw_schema_read(&loader->document, entry, &schema);
    if (!error)
        error = read_items(loader, entry, &items);
    if (!error)
        error = generate(loader, entry, index, &schema, &items);
    if (!error)
        error = check_starts(loader, entry, first, first_job);
    if (!error)
        write_entry(loader, algo, &schema, &items);
    free(items.options);
    if (!error)
        error = check_flows(loader, entry, first);
    return error ? error : gw_loader_announce(loader, entry, first_tenant, first_job);
}

/* Ranks that make calls say things to each other whose contents matter, so packets have some. */
static void demand_payload(struct gw_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->workload.job_count; i++)
        scenario->host.payload |= scenario->workload.jobs[i].via == GW_JOB_VIA_CALLS;
}

int gw_loader_workload(struct gw_loader *loader)
{
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "workload");
    if (loader->out)
        fprintf(loader->out, "workload:\n");
    bool is_list = section && section->kind == GW_DOC_VALUE_LIST;
    if (is_list && section->count == 0)
        return gw_document_error(&loader->document, section, GW_ERR_INVALID,
                                 "expected at least one workload");
    int error = is_list ? GW_OK : load_entry(loader, section, 0);
    for (uint32_t i = 0; is_list && i < section->count && !error; i++)
        error = load_entry(loader, section->items[i], i);
    demand_payload(loader->scenario);
    return error;
}
