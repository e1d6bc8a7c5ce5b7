/*
 * The control plane of a switch: routes, and ports that come and go; see switch.h.
 */
#include "core/switch/switch_impl.h"

#include "base/error.h"

struct gw_node *gw_switch_node(struct gw_switch *sw)
{
    return &sw->node;
}

void gw_switch_set_routes(struct gw_switch *sw, const struct gw_switch_routes *routes)
{
    sw->route.table = *routes;
}

/* Lets the switches above know that `address` is below; without room or packet they learn it when
 * it sends. */
static void announce(struct gw_switch *sw, uint32_t address, gw_time now)
{
    struct gw_pkt *pkt = sw->route.uplink == GW_PORT_NONE ? NULL : gw_pkt_claim(sw->pool);
    if (!pkt)
        return;
    *pkt = (struct gw_pkt){
        .q = {.size = sw->trim_size, .class = GW_CLASS_CONTROL, .kind = GW_PKT_ACK},
        .src = address,
        .dst = GW_ADDRESS_NONE,
        .buf = GW_BUF_NONE,
    };
    gw_switch_send_own(sw, pkt, now);
}

int gw_switch_open_port(struct gw_switch *sw, uint16_t port, uint32_t address, bool is_edge,
                        gw_time now)
{
    GW_ASSERT(sw->classify.learned);
    int code = GW_OK;
    if (port != sw->route.uplink)
        code = gw_learned_note(&sw->learned, address, port, now);
    if (code)
        return code;
    sw->links[port].is_edge = is_edge;
    if (port != sw->route.uplink)
        announce(sw, address, now);
    else
        gw_switch_announce(sw, now);
    return GW_OK;
}

void gw_switch_announce(struct gw_switch *sw, gw_time now)
{
    uint32_t at = 0;
    for (const struct gw_learned_entry *entry; (entry = gw_learned_next(&sw->learned, &at));)
        if (entry->port != sw->route.uplink &&
            (sw->links[entry->port].is_edge || !gw_learned_is_idle(&sw->learned, entry, now)))
            announce(sw, entry->address, now);
}

void gw_switch_set_group(struct gw_switch *sw, uint16_t port, uint16_t group, gw_time now)
{
    uint16_t before = sw->links[port].group;
    GW_ASSERT(group == GW_PORT_NONE || (group < sw->node.port_count && group != port));
    sw->links[port].group = group;
    sw->has_groups |= group != GW_PORT_NONE;
    if (before == GW_PORT_NONE || before == group)
        return;
    for (uint16_t i = 0; i < sw->node.port_count; i++)
        if (sw->links[i].group == before)
            return;
    gw_switch_queue_clear(&sw->queue, before, now); /* nobody hears it; the next may be others */
}

/* Who hung on the port is no job's server any more. */
static void forget_servers(struct gw_switch *sw, uint16_t port)
{
    uint32_t at = 0;
    for (const struct gw_learned_entry *entry; (entry = gw_learned_next(&sw->learned, &at));)
        if (entry->port == port)
            gw_switch_jobs_server_gone(&sw->jobs, entry->address);
}

void gw_switch_close_port(struct gw_switch *sw, uint16_t port, gw_time now)
{
    if (sw->classify.learned && sw->links[port].is_edge)
        forget_servers(sw, port);
    if (sw->classify.learned)
        gw_learned_forget(&sw->learned, port);
    sw->links[port].is_edge = false;
    gw_switch_set_group(sw, port, GW_PORT_NONE, now);
    gw_switch_queue_clear(&sw->queue, port, now);
    if (sw->notice) {
        gw_switch_notice_close(sw->notice, port, now);
        gw_switch_apply_notices(sw);
    }
}

bool gw_switch_mark_at(struct gw_switch *sw, uint16_t port, uint32_t bytes)
{
    return gw_switch_queue_mark_at(&sw->queue, port, bytes);
}

void gw_switch_set_classes(struct gw_switch *sw, uint16_t port, const uint8_t classes[GW_CLASSES])
{
    gw_switch_queue_set_classes(&sw->queue, port, classes);
}

struct gw_port_stats gw_switch_port_stats(const struct gw_switch *sw, uint16_t port)
{
    return gw_switch_queue_stats(&sw->queue, port);
}

const struct gw_switch_stats *gw_switch_stats(const struct gw_switch *sw)
{
    return &sw->stats;
}

const struct gw_switch_notice *gw_switch_notices(const struct gw_switch *sw)
{
    return sw->notice;
}

void gw_switch_set_notice_hold(struct gw_switch *sw, gw_time hold, gw_time save, gw_time now)
{
    gw_switch_notice_set_hold(sw->notice, hold, save, now);
    gw_switch_apply_notices(sw);
}

uint32_t gw_switch_job_count(const struct gw_switch *sw)
{
    return sw->jobs.count;
}

void gw_switch_use(const struct gw_switch *sw, uint32_t who, struct gw_tenant_use *use)
{
    gw_switch_jobs_use(&sw->jobs, who, use);
}

uint32_t gw_switch_backlog(const struct gw_switch *sw, uint16_t port)
{
    return gw_switch_queue_backlog(&sw->queue, port);
}
