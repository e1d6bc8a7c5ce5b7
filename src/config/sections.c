/*
 * The sections of a scenario that are read by table: `host:`, `queue:`, `cc:`, `lb:`, `loss:` and
 * `metrics:`.
 *
 * Defaults are the preset smt-text: the hosts and queues of SMaRTT section 4.
 */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"

enum {
    PACKET_BYTES_MAX = 65535, /* payload with header */
    ACK_EVERY_MAX = 32,       /* the endpoint's limit */
};

static const char *const kind_others[] = {"kind", "preset", NULL};

/* `host:` as text says it; checked and copied to gw_host_cfg. */
struct host_options {
    uint64_t mtu, header;
    gw_q16 jitter;
    gw_time ack_delay, stall;
    uint32_t ack_every, train;
    bool payload;
};

static const struct gw_param host_params[] = {
    {.name = "mtu",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct host_options, mtu),
     .initial = "4096",
     .help = "payload bytes of a full packet"},
    {.name = "header",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct host_options, header),
     .initial = "64",
     .help = "header bytes of every packet; the size of ACKs and trimmed packets"},
    {.name = "jitter",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct host_options, jitter),
     .initial = "1",
     .help = "each packet leaves up to this many of its own packet times late"},
    {.name = "ack_every",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct host_options, ack_every),
     .initial = "1",
     .help = "packets per ACK, 1 to 32"},
    {.name = "ack_delay",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct host_options, ack_delay),
     .initial = "1us",
     .help = "longest time that an ACK is held back when ack_every is above 1"},
    {.name = "train",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct host_options, train),
     .initial = "1",
     .help = "packets per train"},
    {.name = "stall",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct host_options, stall),
     .initial = "0",
     .help = "a flow without progress for this long fails; 0: never"},
    {.name = "payload",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct host_options, payload),
     .initial = "no",
     .help = "messages have contents, which are checked on arrival; the run takes one thread"},
};

static const struct gw_algo host_table = {
    .name = "host",
    .params = host_params,
    .param_count = sizeof(host_params) / sizeof(host_params[0]),
    .cfg_size = sizeof(struct host_options),
};

/* `queue:` besides the discipline's own parameters. */
struct queue_options {
    char capacity[GW_PARAM_TEXT_MAX];
    uint64_t shared;
    gw_q16 shared_alpha;
    struct gw_lossless_options pause;
};

static const struct gw_param queue_params[] = {
    {.name = "capacity",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct queue_options, capacity),
     .initial = "1bdp",
     .help = "bytes of data per port, or a multiple of the bandwidth-delay product"},
    {.name = "shared",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct queue_options, shared),
     .initial = "0",
     .help = "bytes of the pool that the ports of a switch share; 0: none"},
    {.name = "shared_alpha",
     .type = GW_PARAM_Q16,
     .offset = offsetof(struct queue_options, shared_alpha),
     .initial = "1",
     .help = "one port may hold this multiple of the pool's free space"},
    {.name = "lossless",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct queue_options, pause.lossless),
     .initial = "no",
     .help = "hold data back on the links instead of dropping it (IEEE 802.1Qbb)"},
    {.name = "xoff",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct queue_options, pause.xoff),
     .initial = "0",
     .help = "a link is paused when a switch holds more than this of its data; 0: what the longest "
             "link needs to stay busy and two packets"},
    {.name = "xon",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct queue_options, pause.xon),
     .initial = "0",
     .help = "and goes on when it holds no more than this; 0: two packets below xoff"},
};

static const struct gw_algo queue_table = {
    .name = "queue",
    .params = queue_params,
    .param_count = sizeof(queue_params) / sizeof(queue_params[0]),
    .cfg_size = sizeof(struct queue_options),
};

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

/* The key of a section for an error message, or the section where the key is not written. */
static const struct gw_doc_value *place_of(const struct gw_doc_value *section, const char *key)
{
    const struct gw_doc_value *value = gw_doc_value_get(section, key);
    return value ? value : section;
}

static void write_section(const struct gw_loader *loader, const char *name, const char *kind,
                          const struct gw_schema *schema)
{
    if (!loader->out)
        return;
    fprintf(loader->out, "%s:\n", name);
    if (kind)
        fprintf(loader->out, "  kind: %s\n", kind);
    gw_schema_write(schema, "  ", loader->out);
}

int gw_loader_host(struct gw_loader *loader)
{
    const struct gw_document *document = &loader->document;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "host");
    struct host_options options;
    struct gw_host_cost_cfg cost = {0};
    const struct gw_schema schema = {
        .parts = {{&host_table, &options}, {&gw_loader_packet_cost, &cost}}, .part_count = 2};
    int error = gw_schema_read(document, section, &schema);
    if (error)
        return error;
    if (options.header == 0 || options.header > PACKET_BYTES_MAX)
        return gw_document_error(document, place_of(section, "header"), GW_ERR_RANGE,
                                 "header must be from 1 to %d bytes", PACKET_BYTES_MAX);
    if (options.mtu == 0 || options.mtu + options.header > PACKET_BYTES_MAX)
        return gw_document_error(document, place_of(section, "mtu"), GW_ERR_RANGE,
                                 "mtu must be at least 1, and with the header at most %d bytes",
                                 PACKET_BYTES_MAX);
    if (options.ack_every == 0 || options.ack_every > ACK_EVERY_MAX)
        return gw_document_error(document, place_of(section, "ack_every"), GW_ERR_RANGE,
                                 "ack_every must be from 1 to %d", ACK_EVERY_MAX);
    if (options.train == 0)
        return gw_document_error(document, place_of(section, "train"), GW_ERR_RANGE,
                                 "train must be at least 1");
    if (options.jitter < 0)
        return gw_document_error(document, place_of(section, "jitter"), GW_ERR_RANGE,
                                 "jitter must not be negative");
    loader->scenario->host = (struct gw_host_cfg){
        .mtu = (uint32_t)options.mtu,
        .header = (uint32_t)options.header,
        .jitter = options.jitter,
        .ack_every = options.ack_every,
        .ack_delay = options.ack_delay,
        .train = options.train,
        .stall = options.stall,
        .cost = cost,
        .payload = options.payload,
    };
    write_section(loader, "host", NULL, &schema);
    return GW_OK;
}

/* "1bdp", "0.5bdp", or bytes. */
static int parse_capacity(const char *text, uint32_t bdp, uint64_t *bytes)
{
    static const char suffix[] = "bdp";
    char number[GW_PARAM_TEXT_MAX];
    size_t length = strlen(text), suffix_length = sizeof(suffix) - 1;
    if (length < suffix_length || strcmp(text + length - suffix_length, suffix) != 0)
        return gw_parse_bytes(text, bytes);
    memcpy(number, text, length - suffix_length);
    number[length - suffix_length] = '\0';
    gw_q16 factor;
    int error = gw_parse_q16(number, &factor);
    if (error)
        return error;
    if (factor < 0)
        return GW_ERR_RANGE;
    *bytes = (uint64_t)gw_q16_mul(factor, bdp);
    return GW_OK;
}

/* What an idle pool lets one port hold. */
static uint64_t shared_part(uint64_t shared, gw_q16 alpha)
{
    return alpha >= GW_Q16_ONE ? shared : (uint64_t)gw_q16_mul((gw_q16)shared, alpha);
}

/* A queue that a link has of its own must hold a packet, too. */
static int check_link_queues(const struct gw_loader *loader, uint32_t full)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t bytes = topo->links[i].side[side].queue_bytes;
            if (bytes != 0 && bytes < full)
                return gw_document_error(
                    &loader->document, gw_doc_value_get(loader->document.root, "topology"),
                    GW_ERR_RANGE,
                    "the queue of the link between %s and %s is %u bytes; it "
                    "must hold a packet of %u bytes",
                    topo->nodes[topo->links[i].side[0].node].name,
                    topo->nodes[topo->links[i].side[1].node].name, bytes, full);
        }
    return GW_OK;
}

int gw_loader_queue(struct gw_loader *loader)
{
    const struct gw_document *document = &loader->document;
    struct gw_scenario *scenario = loader->scenario;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "queue");
    const struct gw_algo *algo =
        gw_schema_kind(document, section, "queue", &gw_qdisc_registry, "trim");
    if (!algo)
        return GW_ERR_INVALID;
    struct queue_options options;
    const struct gw_schema schema = {
        .parts = {{algo, &scenario->queue.cfg}, {&queue_table, &options}},
        .part_count = 2,
        .others = kind_others,
    };
    int error = gw_schema_read(document, section, &schema);
    if (error)
        return error;
    uint64_t capacity;
    uint32_t full = gw_scenario_packet_max(scenario);
    error = parse_capacity(options.capacity, scenario->bdp, &capacity);
    if (error)
        return gw_document_error(document, place_of(section, "capacity"), error,
                                 "%s: %s; expected a size such as 1MiB or 1bdp",
                                 gw_error_message(error), options.capacity);
    error = gw_loader_lossless(loader, section, &options.pause, &capacity);
    if (error)
        return error;
    if (capacity < full || capacity > UINT32_MAX)
        return gw_document_error(document, place_of(section, "capacity"), GW_ERR_RANGE,
                                 "capacity is %llu bytes; it must hold a packet of %u bytes and "
                                 "be below 4 GiB",
                                 (unsigned long long)capacity, full);
    if (options.shared_alpha <= 0)
        return gw_document_error(document, place_of(section, "shared_alpha"), GW_ERR_RANGE,
                                 "shared_alpha must be above 0");
    if (options.shared &&
        (options.shared < full || shared_part(options.shared, options.shared_alpha) < full))
        return gw_document_error(document, place_of(section, "shared"), GW_ERR_RANGE,
                                 "one port's part of the pool must hold a packet of %u bytes",
                                 full);
    if (options.shared && options.pause.lossless)
        return gw_document_error(document, place_of(section, "shared"), GW_ERR_INVALID,
                                 "shared needs lossless: no; a pool can run out");
    error = check_link_queues(loader, full);
    if (error)
        return error;
    scenario->queue.qdisc = (const struct gw_qdisc_ops *)algo;
    scenario->queue.capacity = (uint32_t)capacity;
    scenario->queue.shared_bytes = options.shared;
    scenario->queue.shared_alpha = options.shared_alpha;
    snprintf(options.capacity, sizeof(options.capacity), "%lluB", (unsigned long long)capacity);
    write_section(loader, "queue", algo->name, &schema);
    return GW_OK;
}

/* One of `lb:`, `loss:`. */
static const struct gw_algo *load_algorithm(struct gw_loader *loader,
                                            const struct gw_registry *registry, const char *initial,
                                            union gw_algo_cfg *cfg)
{
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, registry->kind);
    const struct gw_algo *algo =
        gw_schema_kind(&loader->document, section, registry->kind, registry, initial);
    if (!algo)
        return NULL;
    GW_ASSERT(algo->cfg_size <= sizeof(*cfg));
    const struct gw_schema schema = {
        .parts = {{algo, cfg}}, .part_count = 1, .others = kind_others};
    if (gw_schema_read(&loader->document, section, &schema) != GW_OK)
        return NULL;
    write_section(loader, registry->kind, algo->name, &schema);
    return algo;
}

/* `cc:`, where "eqds+smartt" has the keys of both, and the presets of the latter. */
static int load_cc(struct gw_loader *loader)
{
    struct gw_transport *transport = &loader->scenario->transport;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "cc");
    const char *name = gw_schema_name(&loader->document, section, "cc", "smartt");
    if (!name)
        return GW_ERR_INVALID;
    if (gw_transport_choose(transport, name) != GW_OK)
        return gw_schema_unknown(&loader->document, section, name, &gw_cc_registry,
                                 &gw_grant_registry);
    struct gw_schema schema = {
        .parts = {{&transport->cc->algo, &transport->cc_cfg}},
        .part_count = 1,
        .others = kind_others,
    };
    if (transport->grant)
        schema.parts[schema.part_count++] =
            (struct gw_schema_part){&transport->grant->algo, &transport->grant_cfg};
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error)
        write_section(loader, "cc", name, &schema);
    return error;
}

int gw_loader_transport(struct gw_loader *loader)
{
    struct gw_transport *transport = &loader->scenario->transport;
    int error = load_cc(loader);
    if (error)
        return error;
    transport->lb = (const struct gw_lb_ops *)load_algorithm(loader, &gw_lb_registry, "reps",
                                                             &transport->lb_cfg);
    if (!transport->lb)
        return GW_ERR_INVALID;
    transport->loss = (const struct gw_loss_ops *)load_algorithm(loader, &gw_loss_registry, "trim",
                                                                 &transport->loss_cfg);
    return transport->loss ? GW_OK : GW_ERR_INVALID;
}

/* The words of `metrics.series`. */
static int load_series(struct gw_loader *loader, const struct gw_doc_value *list)
{
    const struct gw_document *document = &loader->document;
    struct gw_metrics_cfg *metrics = &loader->scenario->metrics;
    const struct {
        const char *name;
        bool *wanted;
    } words[] = {{"cwnd", &metrics->cwnd}, {"queue", &metrics->queue}, {"rate", &metrics->rate}};
    if (list->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(document, list, GW_ERR_INVALID,
                                 "expected a list of cwnd, queue and rate");
    for (uint32_t i = 0; i < list->count; i++) {
        const char *text = gw_schema_text(document, list->items[i]);
        bool known = false;
        for (uint32_t w = 0; text && w < sizeof(words) / sizeof(words[0]); w++)
            if (strcmp(text, words[w].name) == 0)
                *words[w].wanted = known = true;
        if (text && !known)
            return gw_document_error(document, list->items[i], GW_ERR_UNKNOWN,
                                     "unknown series: %s; expected cwnd, queue or rate", text);
        if (!text)
            return GW_ERR_INVALID;
    }
    return GW_OK;
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

/* The same as text: both ends, and which of their links it is. */
static void write_pcap(const struct gw_loader *loader)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    uint32_t wanted = loader->scenario->metrics.pcap_link, number = 0;
    const struct gw_link *link = &topo->links[wanted];
    const struct gw_topo_node *from = &topo->nodes[link->side[0].node];
    for (uint16_t i = 0; i < link->side[0].port; i++)
        number += topo->ports[from->first_port + i].peer == link->side[1].node;
    fprintf(loader->out, "  pcap: [%s, %s, %u]\n", from->name, topo->nodes[link->side[1].node].name,
            number);
}

int gw_loader_metrics(struct gw_loader *loader)
{
    static const char *const others[] = {"series", "pcap", NULL};
    struct gw_metrics_cfg *metrics = &loader->scenario->metrics;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "metrics");
    const struct gw_doc_value *series = gw_doc_value_get(section, "series");
    const struct gw_doc_value *pcap = gw_doc_value_get(section, "pcap");
    const struct gw_schema schema = {
        .parts = {{&metrics_table, metrics}}, .part_count = 1, .others = others};
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error && series)
        error = load_series(loader, series);
    if (!error && pcap)
        error = load_pcap(loader, pcap);
    if (error)
        return error;
    if (series && series->count && metrics->sample == 0)
        return gw_document_error(&loader->document, series, GW_ERR_INVALID,
                                 "a series needs metrics.sample, its interval");
    if (metrics->sample && metrics->sample < GW_NS)
        return gw_document_error(&loader->document, place_of(section, "sample"), GW_ERR_RANGE,
                                 "sample must be at least 1ns");
    if (!series && metrics->sample)
        metrics->cwnd = metrics->queue = metrics->rate = true;
    write_section(loader, "metrics", NULL, &schema);
    if (!loader->out)
        return GW_OK;
    fprintf(loader->out, "  series: [%s%s%s%s%s]\n", metrics->cwnd ? "cwnd" : "",
            metrics->cwnd && (metrics->queue || metrics->rate) ? ", " : "",
            metrics->queue ? "queue" : "", metrics->queue && metrics->rate ? ", " : "",
            metrics->rate ? "rate" : "");
    write_pcap(loader);
    return GW_OK;
}
