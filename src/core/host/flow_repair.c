/*
 * The sender half of a flow repairs: what counts as lost, when, and what is done without an answer;
 * see flow_tx.h.
 *
 * A receiver that has no memory for the message yet says so: then nothing counts as lost by the
 * network, and single packets ask again, at growing distances, until one is acknowledged (as a
 * receiver that is not ready in InfiniBand, Architecture Specification volume 1,
 * section 9.7.5.2.8).
 */
#include "core/host/flow_tx.h"

#include "base/stall.h"

enum {
    /* Between packets that ask whether the receiver is ready: from an eighth of a base RTT, doubled
     * each time, to four. */
    HOLD_SHIFT_FIRST = 3,
    HOLD_SHIFT_MAX = 5,
};

/* Time since a record's transmission. */
static gw_time record_age(const struct gw_tx_record *record, gw_time now)
{
    int32_t ticks = (int32_t)((uint32_t)(now >> GW_TICK_SHIFT) - record->sent);
    return ticks < 0 ? 0 : (gw_time)ticks << GW_TICK_SHIFT;
}

/*
 * When the record's age reaches `rto`: at the beginning of a tick, since the age does not change
 * within one and a timer in between would fire in vain, again and again.
 */
static gw_time timeout_at(const struct gw_tx_record *record, gw_time rto, gw_time now)
{
    gw_time age = record_age(record, now);
    if (age >= rto)
        return now;
    gw_time ticks = (rto - age + (1u << GW_TICK_SHIFT) - 1) >> GW_TICK_SHIFT;
    return ((now >> GW_TICK_SHIFT) + ticks) << GW_TICK_SHIFT;
}

/* The longest that a packet may stay unanswered now. */
static gw_time rto_of(const struct gw_tx_flow *flow)
{
    const struct gw_transport *transport = flow->transport;
    gw_time rto = transport->loss->period(flow->loss_state, transport->loss_cfg.bytes);
    return rto < GW_RTO_MAX ? rto : GW_RTO_MAX;
}

void gw_flow_tx_refresh_rto(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    gw_time rto = rto_of(flow);
    bool sooner = rto < flow->rto;
    flow->rto = rto;
    uint32_t oldest = gw_tx_list_first(flow->records, gw_tx_flight_head(ep));
    if (sooner && oldest != gw_tx_flight_head(ep))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), timeout_at(&flow->records[oldest], rto, now));
}

/* Moves a record in flight to the lost list; returns its payload. */
static uint32_t take_back(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at)
{
    uint32_t len = gw_tx_payload(flow, gw_tx_seq(ep, flow, at));
    gw_tx_list_remove(flow->records, at);
    gw_tx_list_append(flow->records, gw_tx_lost_head(ep), at);
    flow->records[at].state = GW_TX_LOST;
    flow->in_flight -= len;
    flow->lost_count++;
    return len;
}

void gw_flow_tx_lose(struct gw_endpoint *ep, struct gw_tx_flow *flow, uint32_t at, bool trimmed,
                     gw_time now)
{
    uint32_t len = take_back(ep, flow, at);
    const struct gw_transport *transport = flow->transport;
    struct gw_cc_loss loss = {.bytes = len, .in_flight = flow->in_flight, .trimmed = trimmed};
    transport->cc->on_loss(flow->cc_state, transport->cc_cfg.bytes, &flow->path, &loss,
                           &flow->window, now);
    flow->pace = flow->window.pace;
}

void gw_flow_tx_hold(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    while (!gw_tx_list_is_empty(flow->records, gw_tx_flight_head(ep)))
        take_back(ep, flow, gw_tx_list_first(flow->records, gw_tx_flight_head(ep)));
    flow->is_held = true;
    flow->unpaid = 0;
    flow->pace_at = gw_time_add(now, (flow->path.brtt >> HOLD_SHIFT_FIRST) << flow->holds);
    flow->holds += flow->holds < HOLD_SHIFT_MAX;
    gw_flow_tx_wake(ep, flow, now);
}

/* Asks for credit when none has come for long, and nothing is in flight that would bring some. */
static void check_starved(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    if (flow->in_flight || !gw_tx_has_work(ep, flow) || gw_tx_credit_allows(flow))
        return;
    gw_time heard = gw_time_before(flow->answered_at, flow->progress_at) ? flow->progress_at
                                                                         : flow->answered_at;
    gw_time due = gw_time_add(heard, flow->rto);
    if (gw_time_before(now, due))
        gw_endpoint_arm_by(ep, gw_tx_index(ep, flow), due);
    else
        flow->is_starved = true;
}

void gw_flow_tx_expire(struct gw_endpoint *ep, struct gw_tx_flow *flow, gw_time now)
{
    const struct gw_transport *transport = flow->transport;
    uint32_t index = gw_tx_index(ep, flow);
    if (gw_stall_is_over(flow->progress_at, ep->cfg.stall, now)) {
        gw_flow_tx_fail(ep, flow, now);
        return;
    }
    uint32_t oldest;
    while ((oldest = gw_tx_list_first(flow->records, gw_tx_flight_head(ep))) !=
           gw_tx_flight_head(ep)) {
        gw_time age = record_age(&flow->records[oldest], now);
        if (age < flow->rto)
            break;
        ep->stats.timeouts++;
        gw_flow_tx_lose(ep, flow, oldest, false, now);
        transport->lb->on_timeout(flow->lb_state, transport->lb_cfg.bytes, now - age, now);
        transport->loss->on_timeout(flow->loss_state, transport->loss_cfg.bytes, now - age, now);
        flow->rto = rto_of(flow);
    }
    gw_endpoint_arm(ep, index, gw_stall_at(flow->progress_at, ep->cfg.stall));
    if (oldest != gw_tx_flight_head(ep))
        gw_endpoint_arm_by(ep, index, timeout_at(&flow->records[oldest], flow->rto, now));
    check_starved(ep, flow, now);
    gw_flow_tx_wake(ep, flow, now);
}
