/*
 * Loading a scenario: reads the sections in the order in which they need each other.
 *
 * The topology is in topology.c, faults in fault_list.c, the workload and the sections that are
 * read by table in *_section.c; YAML is document.c's matter.
 */
#include "config/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"

static const struct gw_schema top_schema = {
    .others = (const char *const[]){"name",        "topology", "workload", "cc",       "lb",
                                    "loss",        "urgency",  "host",     "queue",    "faults",
                                    "convergence", "metrics",  "seed",     "aliases",  "time_limit",
                                    "sweep",       "table",    "claims",   "variants", "pcn",
                                    NULL},
};

/* Base RTT, fastest host link, and bandwidth-delay product; needs topology and host. */
static int measure(struct gw_loader *loader)
{
    struct gw_scenario *scenario = loader->scenario;
    const struct gw_topo *topo = &scenario->topo;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "topology");
    uint32_t header = scenario->host.header;
    scenario->brtt_max = gw_topo_brtt_max(topo, scenario->host.mtu + header, header);
    if (scenario->brtt_max == 0)
        return gw_document_error(&loader->document, section, GW_ERR_INVALID,
                                 "no two hosts are connected");
    for (uint32_t h = 0; h < topo->host_count; h++)
        for (uint32_t p = 0; p < topo->nodes[h].port_count; p++) {
            const struct gw_topo_port *port = &topo->ports[topo->nodes[h].first_port + p];
            uint64_t rate_bps = topo->links[port->link].side[port->side].rate_bps;
            if (rate_bps > scenario->host_rate_bps)
                scenario->host_rate_bps = rate_bps;
        }
    const uint64_t bits_ps = 8 * GW_S; /* turns bit/s times picoseconds into bytes */
    unsigned __int128 bdp =
        (unsigned __int128)scenario->host_rate_bps * scenario->brtt_max / bits_ps;
    if (bdp == 0 || bdp > UINT32_MAX)
        return gw_document_error(&loader->document, section, GW_ERR_RANGE,
                                 "rate times base RTT must be from 1 byte to 4 GiB");
    scenario->bdp = scenario->host.bdp ? scenario->host.bdp : (uint32_t)bdp;
    return GW_OK;
}

/* A time at the top level; `otherwise` is its default as text. "never" is allowed with `may_never`.
 */
static int load_time(struct gw_loader *loader, const char *key, const char *otherwise,
                     bool may_never, gw_time *time)
{
    const struct gw_doc_value *value = gw_doc_value_get(loader->document.root, key);
    const char *text = value ? gw_schema_text(&loader->document, value) : otherwise;
    if (!text)
        return GW_ERR_INVALID;
    if (may_never && strcmp(text, "never") == 0) {
        *time = GW_TIME_NEVER;
    } else {
        int error = gw_parse_time(text, time);
        if (!error && *time == 0 && !may_never)
            error = GW_ERR_RANGE;
        if (error)
            return gw_schema_refuse(&loader->document, value, error,
                                    may_never ? "a time such as 5ms, or never"
                                              : "a time such as 1s");
        if (*time > GW_WORKLOAD_TIME_MAX)
            return gw_document_error(&loader->document, value, GW_ERR_RANGE,
                                     "must be at most 20 days (1728000s)");
    }
    if (loader->out)
        fprintf(loader->out, "%s: %s\n", key, text);
    return GW_OK;
}

static int load_seed(struct gw_loader *loader)
{
    const struct gw_doc_value *value = gw_doc_value_get(loader->document.root, "seed");
    loader->scenario->seed = 1;
    if (value) {
        const char *text = gw_schema_text(&loader->document, value);
        int error = text ? gw_parse_count(text, &loader->scenario->seed) : GW_ERR_INVALID;
        if (error)
            return text ? gw_schema_refuse(&loader->document, value, error, "a whole number")
                        : error;
    }
    if (loader->out)
        fprintf(loader->out, "seed: %llu\n", (unsigned long long)loader->scenario->seed);
    return GW_OK;
}

/* `name:`, or the file's name without folder and suffix. */
static int load_name(struct gw_loader *loader)
{
    char *name = loader->scenario->name;
    const size_t size = sizeof(loader->scenario->name);
    const struct gw_doc_value *value = gw_doc_value_get(loader->document.root, "name");
    const char *file = loader->document.file;
    const char *slash = strrchr(file, '/');
    const char *text = slash ? slash + 1 : file;
    const char *dot = strrchr(text, '.');
    size_t length = dot && dot != text ? (size_t)(dot - text) : strlen(text);
    if (value) {
        text = gw_schema_text(&loader->document, value);
        if (!text)
            return GW_ERR_INVALID;
        length = strlen(text);
        if (length == 0 || length >= size)
            return gw_document_error(&loader->document, value, GW_ERR_RANGE,
                                     "a name has 1 to %zu characters", size - 1);
    }
    if (length >= size)
        for (length = size - 1; length > 0 && (text[length] & 0xc0) == 0x80; length--)
            continue; /* no character of UTF-8 is cut */
    memcpy(name, text, length);
    name[length] = '\0';
    if (loader->out) {
        fputs("name: ", loader->out);
        gw_doc_text_write(name, loader->out);
        fputc('\n', loader->out);
    }
    return GW_OK;
}

static int load_sections(struct gw_loader *loader)
{
    struct gw_scenario *scenario = loader->scenario;
    int error = gw_schema_read(&loader->document, loader->document.root, &top_schema);
    if (!error)
        error = load_name(loader);
    if (!error)
        error = load_seed(loader);
    if (!error)
        error = load_time(loader, "time_limit", "1s", false, &scenario->time_limit);
    if (!error)
        error = load_time(loader, "convergence", "never", true, &scenario->convergence);
    if (!error)
        error = gw_loader_topology(loader);
    if (!error)
        error = gw_loader_host(loader);
    if (!error)
        error = measure(loader);
    if (!error)
        error = gw_loader_pcn(loader);
    if (!error)
        error = gw_loader_workload(loader);
    if (!error)
        error = gw_loader_queue(loader);
    if (!error)
        error = gw_loader_pcn_queue(loader);
    if (!error)
        error = gw_loader_transport(loader);
    if (!error)
        error = gw_loader_faults(loader);
    if (!error)
        error = gw_loader_metrics(loader);
    return error;
}

int gw_scenario_resolve(struct gw_scenario *scenario, const char *file,
                        const struct gw_override *overrides, uint32_t override_count, char *why,
                        FILE *out)
{
    memset(scenario, 0, sizeof(*scenario));
    gw_topo_init(&scenario->topo);
    gw_workload_init(&scenario->workload);
    struct gw_loader loader = {.scenario = scenario, .out = out};
    int error = gw_document_load(&loader.document, file, overrides, override_count, why);
    if (!error)
        error = load_sections(&loader);
    gw_document_free(&loader.document);
    if (error)
        gw_scenario_free(scenario);
    return error;
}

int gw_scenario_load(struct gw_scenario *scenario, const char *file,
                     const struct gw_override *overrides, uint32_t override_count, char *why)
{
    return gw_scenario_resolve(scenario, file, overrides, override_count, why, NULL);
}

uint32_t gw_scenario_packet_max(const struct gw_scenario *scenario)
{
    uint32_t most = scenario->host.header + scenario->host.mtu;
    for (uint32_t i = 0; i < scenario->workload.job_count; i++) {
        const struct gw_job_spec *job = &scenario->workload.jobs[i];
        uint32_t own = (uint32_t)job->rules.header;
        uint32_t header = own > scenario->host.header ? own : scenario->host.header;
        uint32_t bytes = header + 4 * job->values; /* 32-bit integers or floats */
        most = bytes > most ? bytes : most;
    }
    return most;
}

void gw_scenario_free(struct gw_scenario *scenario)
{
    gw_topo_fini(&scenario->topo);
    gw_workload_fini(&scenario->workload);
    free(scenario->faults);
    memset(scenario, 0, sizeof(*scenario));
}
