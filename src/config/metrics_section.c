/* The scenario's `metrics:`: sampled series, RTTs, and the link that --pcap writes. */
#include <string.h>

#include "base/error.h"
#include "config/loader.h"

static const struct gw_param metrics_params[] = {
    {.name = "sample",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct gw_metrics_cfg, sample),
     .initial = "0",
     .help = "interval of the sampled series; 0: no series"},
    {.name = "rtt",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct gw_metrics_cfg, rtt),
     .initial = "no",
     .help = "report how the RTTs of packets are distributed"},
};

static const struct gw_algo metrics_table = {
    .name = "metrics",
    .params = metrics_params,
    .param_count = sizeof(metrics_params) / sizeof(metrics_params[0]),
    .cfg_size = sizeof(struct gw_metrics_cfg),
};

enum {
    WORDS = 7,
};

/* The words of `metrics.series`, and what each is about. */
struct series_word {
    const char *name;
    bool *wanted;
};

static void words_of(struct gw_metrics_cfg *metrics, struct series_word words[WORDS])
{
    const struct series_word all[WORDS] = {
        {"cwnd", &metrics->cwnd},
        {"queue", &metrics->queue},
        {"rate", &metrics->rate},
        {"goodput", &metrics->goodput},
        {"switch_sums", &metrics->switch_sums},
        {"server_sums", &metrics->server_sums},
        {"collisions", &metrics->collisions},
    };
    memcpy(words, all, sizeof(all));
}

static int load_series(struct gw_loader *loader, const struct gw_doc_value *list)
{
    const struct gw_document *document = &loader->document;
    struct series_word words[WORDS];
    words_of(&loader->scenario->metrics, words);
    if (list->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(document, list, GW_ERR_INVALID,
                                 "expected a list of names, such as [cwnd, queue]");
    for (uint32_t i = 0; i < list->count; i++) {
        const char *text = gw_schema_text(document, list->items[i]);
        bool known = false;
        for (uint32_t w = 0; text && w < WORDS; w++)
            if (strcmp(text, words[w].name) == 0)
                *words[w].wanted = known = true;
        if (text && !known)
            return gw_document_error(document, list->items[i], GW_ERR_UNKNOWN,
                                     "unknown series: %s; expected cwnd, queue, rate, goodput, "
                                     "switch_sums, server_sums or collisions",
                                     text);
        if (!text)
            return GW_ERR_INVALID;
    }
    return GW_OK;
}

static void write_series(const struct gw_loader *loader)
{
    struct series_word words[WORDS];
    words_of(&loader->scenario->metrics, words);
    const char *separator = "";
    fputs("  series: [", loader->out);
    for (uint32_t w = 0; w < WORDS; w++)
        if (*words[w].wanted) {
            fprintf(loader->out, "%s%s", separator, words[w].name);
            separator = ", ";
        }
    fputs("]\n", loader->out);
}

/* `metrics.pcap`: the link that --pcap writes. */
static int load_pcap(struct gw_loader *loader, const struct gw_doc_value *pcap)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    struct gw_link_pick pick;
    int error = gw_loader_pick_links(loader, pcap, &pick);
    if (error)
        return error;
    const struct gw_topo_port *port = gw_link_pick_port(topo, &pick, 0);
    loader->scenario->metrics.pcap_link = port->link;
    return GW_OK;
}

/* `metrics.port`: the port of a switch, by its link. */
static int load_port(struct gw_loader *loader, const struct gw_doc_value *value)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    struct gw_link_pick pick;
    int error = gw_loader_pick_links(loader, value, &pick);
    if (error)
        return error;
    if (pick.from < topo->host_count)
        return gw_document_error(&loader->document, value, GW_ERR_INVALID,
                                 "%s is a host; the port must be a switch's, which comes first",
                                 topo->nodes[pick.from].name);
    loader->scenario->metrics.port = topo->nodes[pick.from].first_port + pick.first;
    return GW_OK;
}

/* Its peer's name, and which of the links between the two it is. */
static void write_link(const struct gw_topo *topo, const char *key, uint32_t from, uint16_t port,
                       FILE *out)
{
    const struct gw_topo_port *ports = topo->ports + topo->nodes[from].first_port;
    uint32_t number = 0;
    for (uint16_t i = 0; i < port; i++)
        number += ports[i].peer == ports[port].peer;
    fprintf(out, "  %s: [%s, %s, %u]\n", key, topo->nodes[from].name,
            topo->nodes[ports[port].peer].name, number);
}

static void write_ports(const struct gw_loader *loader)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    const struct gw_metrics_cfg *metrics = &loader->scenario->metrics;
    const struct gw_link_side *pcap = &topo->links[metrics->pcap_link].side[0];
    write_link(topo, "pcap", pcap->node, pcap->port, loader->out);
    if (metrics->port == UINT32_MAX)
        return;
    const struct gw_topo_port *port = &topo->ports[metrics->port];
    const struct gw_link_side *watched = &topo->links[port->link].side[port->side];
    write_link(topo, "port", watched->node, watched->port, loader->out);
}

int gw_loader_metrics(struct gw_loader *loader)
{
    static const char *const others[] = {"series", "pcap", "port", NULL};
    struct gw_metrics_cfg *metrics = &loader->scenario->metrics;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "metrics");
    const struct gw_doc_value *series = gw_doc_value_get(section, "series");
    const struct gw_doc_value *pcap = gw_doc_value_get(section, "pcap");
    const struct gw_doc_value *port = gw_doc_value_get(section, "port");
    const struct gw_schema schema = {
        .parts = {{&metrics_table, metrics}}, .part_count = 1, .others = others};
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error && series)
        error = load_series(loader, series);
    if (!error && pcap)
        error = load_pcap(loader, pcap);
    metrics->port = UINT32_MAX;
    if (!error && port)
        error = load_port(loader, port);
    if (error)
        return error;
    if (series && series->count && metrics->sample == 0)
        return gw_document_error(&loader->document, series, GW_ERR_INVALID,
                                 "a series needs metrics.sample, its interval");
    if (metrics->sample && metrics->sample < GW_NS)
        return gw_document_error(&loader->document, gw_loader_place(section, "sample"),
                                 GW_ERR_RANGE, "sample must be at least 1ns");
    struct series_word words[WORDS];
    words_of(metrics, words);
    for (uint32_t w = 0; w < WORDS && !series && metrics->sample; w++)
        *words[w].wanted = true;
    gw_loader_write(loader, "metrics", NULL, &schema);
    if (!loader->out)
        return GW_OK;
    write_series(loader);
    write_ports(loader);
    return GW_OK;
}
