/* Trains, paths, transports and endpoints of an overlay; see overlay.h. */
#include "net/roles/overlay.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/pacer.h"
#include "net/node_memory.h"

enum {
    SPAN_MAX = 1024,
    RULE_MAX = 32, /* length of an urgency's name, with its end */
    HOPS = 2,
    /* Packets of a window, unless a rate was given: with fewer, a receiver would wait for more
     * before it answers. */
    WINDOW_MIN = 2 * GW_ACK_ASKED,
    WINDOW_MAX_BYTES = 64 << 20,  /* the largest that is of use: an endpoint has less under way */
    WORKERS_BYTES = 4 << 20,      /* of all workers' fragments on their way: near a core */
    WORKER_BYTES_MIN = 256 << 10, /* of one worker's: 10 Gb/s for 200 us */
    WORKER_BYTES_MAX = 704 << 10, /* eleven trains: more is no gain */
    FRAGMENTS = 512,              /* of a worker, at most */
};

/* Of a packet, header and check sum, as the kernel's shapers count it. */
#define ETHERNET_BYTES 18

#define RTO_MIN_TEXT  "20ms" /* GW_OVERLAY_TIMEOUT */
#define RTO_TEXT      "20"   /* base RTTs, as much */
#define HAIL_RTO_TEXT "2"    /* of which GW_OVERLAY_HOST_TIME is enough for both processes */

/* A train leaves at once but arrives over its time on the link, so at the end of a period up to one
 * counts as sent alone. With eight in a period that is no loss of a half, at which rates fall. */
#define REPORT_TRAINS    8
#define REPORT_EVERY_MAX (100 * GW_MS) /* of slow links: signs of progress are to come */

static void set(struct gw_transport *transport, const char *name, const char *text)
{
    const struct gw_algo *algo = &transport->loss->algo;
    int code = gw_algo_set(algo, transport->loss_cfg.bytes, name, text);
    GW_ASSERT(code == GW_OK);
}

static void detect_by(struct gw_transport *transport, const char *name)
{
    const struct gw_algo *algo = gw_registry_find(&gw_loss_registry, name);
    transport->loss = (const struct gw_loss_ops *)algo;
    gw_algo_defaults(algo, transport->loss_cfg.bytes);
}

static int choose(const char *cc, const char *lb, struct gw_transport *transport, char *error)
{
    const struct gw_algo *algo;
    if (gw_transport_choose(transport, cc) != GW_OK)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "no congestion control is called %s", cc);
    transport->lb = (const struct gw_lb_ops *)(algo = gw_registry_find(&gw_lb_registry, lb));
    if (!algo)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "no load balancing is called %s", lb);
    if (transport->lb->spread != GW_SPREAD_HASH)
        return gw_net_fail(error, GW_ERR_INVALID, "%s needs switches that work with it", lb);
    gw_algo_defaults(algo, transport->lb_cfg.bytes);
    return GW_OK;
}

int gw_overlay_transport(const char *cc, const char *lb, bool by_switch, uint32_t paths,
                         struct gw_transport *transport, char *error)
{
    int code = choose(cc, lb, transport, error);
    if (code)
        return code;
    if (paths == 1) {
        detect_by(transport, "sack");
        set(transport, "rto_min", RTO_MIN_TEXT);
        set(transport, "nacks", by_switch ? "yes" : "no");
    } else {
        detect_by(transport, by_switch ? "trim" : "timeout");
        set(transport, "rto", RTO_TEXT);
    }
    return GW_OK;
}

int gw_overlay_parts_transport(const char *lb, struct gw_transport *transport, char *error)
{
    int code = choose("dlcp", lb, transport, error);
    if (code)
        return code;
    detect_by(transport, "timeout");
    set(transport, "rto", HAIL_RTO_TEXT);
    return GW_OK;
}

int gw_overlay_urgency(const char *text, struct gw_transport *transport, char *error)
{
    char name[RULE_MAX];
    size_t length = strcspn(text, ":");
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    const struct gw_algo *algo = gw_registry_find(&gw_urgency_registry, name);
    if (!algo)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "no rule of urgency is called %s", name);
    const struct gw_urgency_ops *urgency = (const struct gw_urgency_ops *)algo;
    bool is_out = gw_transport_is_blast(transport) && urgency->ranks_by_place;
    transport->urgency = urgency == &gw_urgency_message || is_out ? NULL : urgency;
    gw_algo_defaults(algo, transport->urgency_cfg.bytes);
    if (text[length] &&
        gw_algo_preset(algo, transport->urgency_cfg.bytes, text + length + 1) != GW_OK)
        return gw_net_fail(error, GW_ERR_UNKNOWN, "%s has no preset %s", name, text + length + 1);
    return GW_OK;
}

gw_time gw_overlay_report_every(const struct gw_overlay_links *links)
{
    uint64_t rate_bps = links->rate_bps ? links->rate_bps : GW_OVERLAY_RATE_BPS;
    uint32_t packet = links->hdr + links->mtu;
    gw_time trains =
        gw_serialisation(gw_byte_time_from_bps(rate_bps),
                         REPORT_TRAINS * gw_overlay_train(links->hdr, links->mtu) * packet);
    if (trains < GW_OVERLAY_HOST_TIME)
        return GW_OVERLAY_HOST_TIME;
    return trains < REPORT_EVERY_MAX ? trains : REPORT_EVERY_MAX;
}

struct gw_path gw_overlay_path(const struct gw_overlay_links *links, gw_time hops,
                               uint64_t rate_bps)
{
    gw_time brtt = gw_overlay_brtt(hops);
    uint64_t bdp = rate_bps / 8 * (brtt / GW_US) / 1000000;
    uint64_t least = (uint64_t)WINDOW_MIN * (links->mtu + links->hdr);
    if (links->rate_bps == 0 && bdp < least)
        bdp = least;
    return (struct gw_path){
        .brtt = brtt,
        .brtt_max = brtt,
        .rate_bps = rate_bps,
        .bdp = bdp < WINDOW_MAX_BYTES ? (uint32_t)bdp : WINDOW_MAX_BYTES,
        .mtu = links->mtu,
        .hdr = links->hdr,
        .hops = HOPS,
        .trims = links->trims,
    };
}

uint16_t gw_overlay_window(uint32_t world, uint32_t payload)
{
    uint64_t window = FRAGMENTS;
    uint64_t most = WORKERS_BYTES / world;
    if (most > WORKER_BYTES_MAX)
        most = WORKER_BYTES_MAX;
    while (window * payload > most && window / 2 * payload >= WORKER_BYTES_MIN)
        window /= 2;
    return (uint16_t)window;
}

uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload)
{
    uint32_t fits = UINT16_MAX / (hdr + payload);
    if (fits < 1)
        return 1;
    return fits < GW_DATAPATH_TRAIN_MAX ? fits : GW_DATAPATH_TRAIN_MAX;
}

uint64_t gw_overlay_port_bps(const struct gw_overlay_links *links)
{
    uint64_t packet = links->hdr + links->mtu;
    return links->rate_bps * packet / (packet + ETHERNET_BYTES);
}

int gw_overlay_endpoint_open(struct gw_endpoint_cfg *cfg, struct gw_endpoint **endpoint)
{
    cfg->port_count = 1;
    cfg->span_max = SPAN_MAX;
    cfg->early_packets = GW_EARLY_PACKETS; /* 190 KB at MTU 1500 */
    cfg->ack_every = GW_OVERLAY_ACK_EVERY;
    cfg->ack_delay = GW_OVERLAY_HOST_TIME;
    cfg->pace_late = GW_PACER_LATE_MAX;
    cfg->ack_holes = cfg->ack_entropies <= 1; /* what is sent by one path comes in its order */
    cfg->train = gw_overlay_train(cfg->hdr, cfg->mtu);
    cfg->lends = true; /* the loop hands trains over at once */
    cfg->generation = (uint16_t)cfg->seed;
    size_t size = gw_endpoint_size(cfg);
    if (size == 0)
        return GW_ERR_INVALID;
    void *memory = gw_node_memory_take(size);
    if (!memory)
        return GW_ERR_NO_MEMORY;
    *endpoint = gw_endpoint_init(memory, cfg);
    return GW_OK;
}
