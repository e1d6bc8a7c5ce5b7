/* Announced bursts at a switch of the overlay: config and status; see switch_pcn.h. */
#include "cli/switch_pcn.h"

#include "base/error.h"
#include "cli/daemon.h"
#include "config/queue_section.h"

enum {
    JOBS = 16, /* that a port knows: of those that a stranger makes up, each may cost it a hold */
};

#define HOLD_MIN (1 * GW_MS)
#define HOLD_MAX (10 * GW_S)

/* Whether the section says this key. */
static bool says(const struct gw_doc_value *section, const char *key)
{
    return gw_doc_value_get(section, key) != NULL;
}

int gw_switch_pcn_read(const struct gw_document *document, struct gw_pcn_cfg *pcn)
{
    const struct gw_doc_value *section = gw_doc_value_get(document->root, "pcn");
    const struct gw_schema schema = gw_pcn_section_schema(pcn, false);
    int code = gw_pcn_section_read(document, section, &schema);
    if (code)
        return code;
    if (!says(section, "enable"))
        pcn->enable = true;
    if (!says(section, "jobs"))
        pcn->jobs = JOBS;
    if (pcn->hold && (pcn->hold < HOLD_MIN || pcn->hold > HOLD_MAX))
        return gw_document_error(document, gw_doc_value_get(section, "hold"), GW_ERR_RANGE,
                                 "expected a time from 1ms to 10s");
    return GW_OK;
}

const char *gw_switch_pcn_why_not(const struct gw_pcn_cfg *pcn, uint64_t rate_bps,
                                  const struct gw_daemon_queue *queue)
{
    if (!pcn->enable)
        return "the config says pcn.enable: no";
    if (rate_bps == 0)
        return "without a rate nothing waits at the ports";
    bool marks =
        gw_queue_section_marks(queue->qdisc, &queue->cfg, gw_daemon_queue_bytes(queue, rate_bps));
    return marks ? NULL : "the queue does not mark by its length";
}

gw_time gw_switch_pcn_rtt(const struct gw_neighbours *neighbours, uint16_t peers_max)
{
    struct gw_neighbour_event view;
    gw_time below = 0, above = gw_neighbours_way(neighbours).rtt;
    for (uint16_t peer = 0; peer < peers_max; peer++) {
        if (!gw_neighbours_view(neighbours, peer, &view) || view.dial >= 0)
            continue;
        gw_time rtt = gw_neighbours_rtt(neighbours, peer);
        below = rtt > below ? rtt : below;
    }
    return gw_overlay_brtt(2 * (below + above));
}

/* A port whose threshold is lowered: by how many announcements, and to which. */
static json_t *port_of(const struct gw_switch_notice *notices, uint16_t port)
{
    return json_pack("{s:i, s:i, s:I}", "port", (int)port, "open",
                     (int)gw_switch_notice_open(notices, port), "threshold_bytes",
                     (json_int_t)gw_switch_notice_threshold(notices, port));
}

static void add_counters(json_t *status, const struct gw_switch_notice_stats *stats)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"notices", stats->notices},
        {"repeated", stats->repeated},
        {"refused", stats->refused},
        {"no_room", stats->no_room},
        {"heads", stats->heads},
        {"recoveries", stats->recoveries},
        {"moved", stats->moved},
        {"dropped", stats->dropped},
        {"lowered_us", stats->lowered / GW_US},
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        json_object_set_new(status, counters[i].name, json_integer((json_int_t)counters[i].value));
}

json_t *gw_switch_pcn_status(const struct gw_overlay_switch *sw, const char *why, gw_time now)
{
    const struct gw_switch_notice *notices = gw_switch_notices(gw_overlay_switch_core(sw));
    const struct gw_switch_stats *stats = gw_switch_stats(gw_overlay_switch_core(sw));
    json_t *status = json_pack("{s:b}", "active", why == NULL);
    uint32_t open = 0, lowest = UINT32_MAX, lowered = 0;
    if (why) {
        json_object_set_new(status, "why", json_string(why));
        return status;
    }
    json_t *ports = json_array();
    for (uint16_t i = 0; i < gw_overlay_switch_ports(sw); i++) {
        uint32_t bytes = gw_switch_notice_threshold(notices, i);
        uint32_t count = gw_switch_notice_open(notices, i);
        open += count;
        lowest = bytes < lowest ? bytes : lowest;
        lowered += bytes != UINT32_MAX;
        if (count || bytes != UINT32_MAX)
            json_array_append_new(ports, port_of(notices, i));
    }
    json_object_set_new(status, "ports_lowered", json_integer(lowered));
    json_object_set_new(status, "threshold_bytes", json_integer(lowered ? lowest : 0));
    json_object_set_new(status, "open", json_integer(open));
    struct gw_switch_notice_stats total = gw_switch_notice_total(notices, now);
    add_counters(status, &total);
    json_object_set_new(status, "bursts", json_integer((json_int_t)stats->heads));
    json_object_set_new(status, "bursts_met_bytes", json_integer((json_int_t)stats->heads_met));
    json_object_set_new(status, "hold_us",
                        json_integer((json_int_t)(gw_overlay_switch_hold(sw) / GW_US)));
    json_object_set_new(status, "at", ports);
    return status;
}
