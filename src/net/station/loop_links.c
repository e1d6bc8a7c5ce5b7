/* What hangs on the ports of a loop, and what neighbours may send; see loop.h. */
#include "net/station/loop_impl.h"

#include "base/error.h"

static uint32_t port_number(const struct gw_loop *loop, struct gw_loop_port at)
{
    GW_ASSERT(at.node < loop->node_count && at.port < loop->nodes[at.node]->port_count);
    return loop->first_port[at.node] + at.port;
}

void gw_loop_join(struct gw_loop *loop, struct gw_loop_port a, struct gw_loop_port b)
{
    loop->links[port_number(loop, a)].to = port_number(loop, b);
    loop->links[port_number(loop, b)].to = port_number(loop, a);
}

void gw_loop_link(struct gw_loop *loop, struct gw_loop_port at, uint16_t peer, bool is_way_out)
{
    uint32_t port = port_number(loop, at);
    loop->arrives[peer] = port;
    if (is_way_out)
        loop->links[port].peer = peer;
}

static int add_direct(struct gw_loop *loop, struct gw_loop_port at, uint32_t address, uint16_t peer,
                      uint32_t to)
{
    uint32_t port = port_number(loop, at);
    const struct gw_direct direct = {.of = port, .address = address, .peer = peer, .to = to};
    loop->links[port].has_directs = true;
    return gw_directs_put(&loop->directs, &direct);
}

int gw_loop_direct(struct gw_loop *loop, struct gw_loop_port at, uint32_t address, uint16_t peer)
{
    return add_direct(loop, at, address, peer, GW_LOOP_PORT_NONE);
}

int gw_loop_direct_join(struct gw_loop *loop, struct gw_loop_port at, uint32_t address,
                        struct gw_loop_port to)
{
    return add_direct(loop, at, address, GW_DIRECTS_NO_PEER, port_number(loop, to));
}

void gw_loop_undirect(struct gw_loop *loop, struct gw_loop_port at, uint32_t address)
{
    gw_directs_remove(&loop->directs, port_number(loop, at), address);
}

int gw_loop_receive_at(struct gw_loop *loop, uint32_t address, struct gw_loop_port at)
{
    const struct gw_direct direct = {.of = GW_LOOP_PORT_NONE,
                                     .address = address,
                                     .peer = GW_DIRECTS_NO_PEER,
                                     .to = port_number(loop, at)};
    loop->has_locals = true;
    return gw_directs_put(&loop->directs, &direct);
}

int gw_loop_direct_job(struct gw_loop *loop, struct gw_loop_port at, uint32_t job, uint32_t address,
                       uint16_t peer)
{
    const struct gw_direct direct = {
        .of = job, .address = address, .peer = peer, .to = GW_LOOP_PORT_NONE};
    loop->links[port_number(loop, at)].has_directs = true;
    return gw_directs_put(&loop->jobs, &direct);
}

int gw_loop_receive_job(struct gw_loop *loop, uint32_t job, uint32_t address,
                        struct gw_loop_port to)
{
    const struct gw_direct direct = {
        .of = job, .address = address, .peer = GW_DIRECTS_NO_PEER, .to = port_number(loop, to)};
    loop->has_locals = true;
    return gw_directs_put(&loop->jobs, &direct);
}

void gw_loop_forget_job(struct gw_loop *loop, uint32_t job, uint32_t address)
{
    gw_directs_remove(&loop->jobs, job, address);
}

void gw_loop_permit(struct gw_loop *loop, uint16_t peer, const struct gw_permit *permit,
                    uint32_t tenant)
{
    gw_permits_set(&loop->permits, peer, permit, tenant);
}

uint64_t gw_loop_forbidden(const struct gw_loop *loop, uint32_t tenant)
{
    return loop->permits.forbidden[tenant];
}

void gw_loop_unlink(struct gw_loop *loop, uint16_t peer)
{
    loop->arrives[peer] = GW_LOOP_PORT_NONE;
    gw_permits_set(&loop->permits, peer, NULL, 0);
    for (uint32_t i = 0; i < loop->first_port[loop->node_count]; i++)
        if (loop->links[i].peer == peer)
            loop->links[i].peer = GW_DIRECTS_NO_PEER;
    gw_directs_remove_peer(&loop->directs, peer);
    gw_directs_remove_peer(&loop->jobs, peer);
}

void gw_loop_set_rate(struct gw_loop *loop, struct gw_loop_port at, uint64_t rate_bps)
{
    struct gw_loop_link *link = &loop->links[port_number(loop, at)];
    link->byte_time = rate_bps ? gw_byte_time_from_bps(rate_bps) : 0;
    link->pacer = (struct gw_pacer){.free_at = gw_loop_now(loop)};
}
