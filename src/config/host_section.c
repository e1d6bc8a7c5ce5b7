/*
 * The scenario's `host:`, read by table.
 *
 * Defaults are the preset smt-text: the hosts of SMaRTT section 4.
 */
#include "base/error.h"
#include "config/loader.h"

enum {
    PACKET_BYTES_MAX = 65535, /* payload with header */
    ACK_EVERY_MAX = 32,       /* the endpoint's limit */
};

/* `host:` as text says it; checked and copied to gw_host_cfg. */
struct host_options {
    uint64_t mtu, header, bdp;
    gw_q16 jitter;
    gw_time ack_delay, stall, report_every;
    uint32_t ack_every, ack_entropies, train, hail_copies;
    bool resend_over, payload;
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
    {.name = "ack_entropies",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct host_options, ack_entropies),
     .initial = "0",
     .help = "ACKs and NACKs of a flow carry so many entropies in turn, at most 65536; 0: random "
             "ones (the authors' simulator of SMaRTT-REPS: 256)"},
    {.name = "bdp",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct host_options, bdp),
     .initial = "0",
     .help = "bytes that count as the bandwidth-delay product, of which windows and queues are "
             "multiples; 0: rate times base RTT of the longest path (the authors' scripts of "
             "SMaRTT-REPS: 864000)"},
    {.name = "resend_over",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct host_options, resend_over),
     .initial = "no",
     .help = "a lost packet is sent again while less than the window is in flight, else only when "
             "it fits into that (the authors' simulator of SMaRTT-REPS: yes)"},
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
    {.name = "report_every",
     .type = GW_PARAM_TIME,
     .offset = offsetof(struct host_options, report_every),
     .initial = "200us",
     .help = "period in which receivers of blasts report how fast they receive (DLCP "
             "section 3.2.1)"},
    {.name = "hail_copies",
     .type = GW_PARAM_COUNT,
     .offset = offsetof(struct host_options, hail_copies),
     .initial = "1",
     .help = "1 to 4, that leave at once of a hail which begins or ends a blast"},
    {.name = "payload",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct host_options, payload),
     .initial = "no",
     .help = "messages have contents, which are checked on arrival; the run takes one thread"},
};

static const struct gw_preset host_presets[] = {
    {.name = "paper", .settings = "", .help = "the text of SMaRTT-REPS: the defaults"},
    {
        .name = "drafts",
        .settings = "jitter=0.001 ack_entropies=256 resend_over=yes bdp=864000",
        .help =
            "as the authors of SMaRTT-REPS ran it, at 800 Gb/s; their hosts have no jitter, but "
            "what arrives at the same time has no fixed order there",
    },
};

static const struct gw_algo host_table = {
    .name = "host",
    .params = host_params,
    .presets = host_presets,
    .param_count = sizeof(host_params) / sizeof(host_params[0]),
    .preset_count = sizeof(host_presets) / sizeof(host_presets[0]),
    .cfg_size = sizeof(struct host_options),
};

int gw_loader_host(struct gw_loader *loader)
{
    const struct gw_document *document = &loader->document;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "host");
    struct host_options options;
    struct gw_host_cost_cfg cost = {0};
    const struct gw_schema schema = {
        .parts = {{&host_table, &options, "preset"}, {&gw_loader_packet_cost, &cost, "cost"}},
        .part_count = 2};
    int error = gw_schema_read(document, section, &schema);
    if (error)
        return error;
    if (options.header == 0 || options.header > PACKET_BYTES_MAX)
        return gw_document_error(document, gw_loader_place(section, "header"), GW_ERR_RANGE,
                                 "header must be from 1 to %d bytes", PACKET_BYTES_MAX);
    if (options.mtu == 0 || options.mtu + options.header > PACKET_BYTES_MAX)
        return gw_document_error(document, gw_loader_place(section, "mtu"), GW_ERR_RANGE,
                                 "mtu must be at least 1, and with the header at most %d bytes",
                                 PACKET_BYTES_MAX);
    if (options.ack_every == 0 || options.ack_every > ACK_EVERY_MAX)
        return gw_document_error(document, gw_loader_place(section, "ack_every"), GW_ERR_RANGE,
                                 "ack_every must be from 1 to %d", ACK_EVERY_MAX);
    if (options.ack_entropies > GW_ACK_ENTROPIES_MAX)
        return gw_document_error(document, gw_loader_place(section, "ack_entropies"), GW_ERR_RANGE,
                                 "ack_entropies must be at most %d", GW_ACK_ENTROPIES_MAX);
    if (options.bdp > UINT32_MAX)
        return gw_document_error(document, gw_loader_place(section, "bdp"), GW_ERR_RANGE,
                                 "bdp must be below 4 GiB");
    if (options.train == 0)
        return gw_document_error(document, gw_loader_place(section, "train"), GW_ERR_RANGE,
                                 "train must be at least 1");
    if (options.report_every < GW_US)
        return gw_document_error(document, gw_loader_place(section, "report_every"), GW_ERR_RANGE,
                                 "report_every must be at least 1us");
    if (options.hail_copies == 0 || options.hail_copies > GW_HAIL_COPIES_MAX)
        return gw_document_error(document, gw_loader_place(section, "hail_copies"), GW_ERR_RANGE,
                                 "hail_copies must be from 1 to %d", GW_HAIL_COPIES_MAX);
    loader->scenario->host = (struct gw_host_cfg){
        .mtu = (uint32_t)options.mtu,
        .header = (uint32_t)options.header,
        .jitter = options.jitter,
        .ack_every = options.ack_every,
        .ack_delay = options.ack_delay,
        .ack_entropies = options.ack_entropies,
        .bdp = (uint32_t)options.bdp,
        .train = options.train,
        .stall = options.stall,
        .report_every = options.report_every,
        .hail_copies = options.hail_copies,
        .cost = cost,
        .resend_over = options.resend_over,
        .payload = options.payload,
    };
    gw_loader_write(loader, "host", NULL, &schema);
    return GW_OK;
}
