/*
 * `queue:`, and what a scenario's has besides: pools, and links that hold data back.
 *
 * A scenario's defaults are the preset smt-text: the queues of SMaRTT section 4. What makes queues
 * lossless is in headroom.c.
 */
#include "config/queue_section.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"
#include "topo/memory.h"

/* `queue:` besides the discipline's own parameters. */
struct queue_options {
    char capacity[GW_PARAM_TEXT_MAX];
    uint64_t shared;
    gw_q16 shared_alpha;
    struct gw_lossless_options pause;
};

static const char *const kind_others[] = {"kind", NULL};

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

int gw_queue_section_read(struct gw_queue_section *section, const char *initial,
                          union gw_algo_cfg *cfg, const struct gw_schema_part *own)
{
    const struct gw_algo *algo =
        gw_schema_kind(section->document, section->value, "queue", &gw_qdisc_registry, initial);
    if (!algo)
        return GW_ERR_INVALID;
    section->qdisc = (const struct gw_qdisc_ops *)algo;
    section->schema = (struct gw_schema){
        .parts = {{algo, cfg, "preset"}, *own},
        .part_count = 2,
        .others = kind_others,
    };
    return gw_schema_read(section->document, section->value, &section->schema);
}

/* "1bdp", "0.5bdp", or bytes. */
static int parse_capacity(const char *text, uint32_t bdp, uint64_t *bytes)
{
    static const char suffix[] = "bdp";
    char number[GW_PARAM_TEXT_MAX];
    size_t length = strlen(text), suffix_length = sizeof(suffix) - 1;
    if (bdp == 0 || length < suffix_length || strcmp(text + length - suffix_length, suffix) != 0)
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

int gw_queue_section_capacity(const struct gw_queue_section *section, const char *text,
                              uint32_t bdp, uint64_t *bytes)
{
    int error = parse_capacity(text, bdp, bytes);
    return error ? gw_document_error(section->document, gw_loader_place(section->value, "capacity"),
                                     error, "%s: %s; expected a size such as 1MiB%s",
                                     gw_error_message(error), text, bdp ? " or 1bdp" : "")
                 : GW_OK;
}

int gw_queue_section_check(const struct gw_queue_section *section, uint64_t capacity,
                           const char *what, uint32_t least)
{
    if (capacity >= least && capacity <= UINT32_MAX)
        return GW_OK;
    return gw_document_error(section->document, gw_loader_place(section->value, "capacity"),
                             GW_ERR_RANGE,
                             "capacity is %llu bytes; it must hold %s of %u bytes and be below "
                             "4 GiB",
                             (unsigned long long)capacity, what, least);
}

bool gw_queue_section_marks(const struct gw_qdisc_ops *qdisc, const union gw_algo_cfg *cfg,
                            uint32_t capacity)
{
    void *state = gw_memory_zeroed(1, GW_QDISC_STATE_MAX);
    qdisc->init(state, cfg, capacity);
    bool marks = qdisc->mark_at && qdisc->mark_at(state, cfg, 0);
    free(state);
    return marks;
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
    struct gw_queue_section queue = {.document = document, .value = section};
    struct queue_options options;
    const struct gw_schema_part own = {.algo = &queue_table, .cfg = &options};
    uint64_t capacity;
    uint32_t full = gw_scenario_packet_max(scenario);
    int error = gw_queue_section_read(&queue, "trim", &scenario->queue.cfg, &own);
    if (!error)
        error = gw_queue_section_capacity(&queue, options.capacity, scenario->bdp, &capacity);
    if (!error)
        error = gw_loader_lossless(loader, section, &options.pause, &capacity);
    if (!error)
        error = gw_queue_section_check(&queue, capacity, "a packet", full);
    if (error)
        return error;
    if (options.shared_alpha <= 0)
        return gw_document_error(document, gw_loader_place(section, "shared_alpha"), GW_ERR_RANGE,
                                 "shared_alpha must be above 0");
    if (options.shared &&
        (options.shared < full || shared_part(options.shared, options.shared_alpha) < full))
        return gw_document_error(document, gw_loader_place(section, "shared"), GW_ERR_RANGE,
                                 "one port's part of the pool must hold a packet of %u bytes",
                                 full);
    if (options.shared && options.pause.lossless)
        return gw_document_error(document, gw_loader_place(section, "shared"), GW_ERR_INVALID,
                                 "shared needs lossless: no; a pool can run out");
    error = check_link_queues(loader, full);
    if (error)
        return error;
    scenario->queue.qdisc = queue.qdisc;
    scenario->queue.capacity = (uint32_t)capacity;
    scenario->queue.shared_bytes = options.shared;
    scenario->queue.shared_alpha = options.shared_alpha;
    snprintf(options.capacity, sizeof(options.capacity), "%lluB", (unsigned long long)capacity);
    gw_loader_write(loader, "queue", queue.qdisc->algo.name, &queue.schema);
    return GW_OK;
}
