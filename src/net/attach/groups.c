/* The multicast groups of a station; see groups.h. */
#include "net/attach/groups.h"

#include <stdlib.h>

#include "net/key.h"

enum {
    PORT = 4794, /* of groups that nobody chose, unless we listen at it */
    EARLY = 6,   /* probes for a member that has come: the first of them it may not hear yet */
};

/* Of organisations and their sites (RFC 2365, section 6.2), and transient ones of a link. */
#define GROUPS_V4      "239.192.0.0"
#define GROUPS_V4_MASK UINT32_C(0x3ffff)
#define GROUPS_V6      "ff12::8000:0"
#define GROUPS_V6_MASK UINT32_C(0x3fffffff)

struct group {
    uint32_t job;
    uint64_t key;     /* name of it */
    uint32_t members; /* 0: free */
    uint32_t early;   /* probes that are still to leave before their time */
    uint64_t cookie;
    struct gw_sock_addr addr;
};

struct gw_groups {
    struct gw_groups_cfg cfg;
    struct group *groups; /* cfg.count */
    uint16_t *of_peer;    /* cfg.first_peer: number of its group, or GW_GROUP_NONE */
};

struct gw_sock_addr gw_groups_choose(const struct gw_sock_addr *listen, uint32_t ports,
                                     uint32_t node_address, uint32_t count)
{
    struct gw_sock_addr first;
    bool is_v6 = gw_sock_addr_is_v6(listen);
    uint32_t room = (is_v6 ? GROUPS_V6_MASK : GROUPS_V4_MASK) - count;
    uint32_t port = gw_sock_addr_port(listen);
    port = PORT - port < ports ? port + ports : PORT;
    gw_sock_addr_parse(is_v6 ? GROUPS_V6 : GROUPS_V4, (uint16_t)port, &first);
    gw_sock_addr_advance(&first, node_address % room);
    return first;
}

struct gw_groups *gw_groups_open(const struct gw_groups_cfg *cfg)
{
    struct gw_groups *own = calloc(1, sizeof(*own));
    if (!own)
        return NULL;
    own->cfg = *cfg;
    own->groups = calloc(cfg->count, sizeof(*own->groups));
    own->of_peer = malloc(cfg->first_peer * sizeof(*own->of_peer));
    if (!own->groups || !own->of_peer) {
        gw_groups_close(own);
        return NULL;
    }
    for (uint16_t i = 0; i < cfg->first_peer; i++)
        own->of_peer[i] = GW_GROUP_NONE;
    return own;
}

void gw_groups_close(struct gw_groups *own)
{
    free(own->groups);
    free(own->of_peer);
    free(own);
}

const struct gw_groups_cfg *gw_groups_cfg(const struct gw_groups *own)
{
    return &own->cfg;
}

/* The job's group, else a free one, else NULL. */
static struct group *find(const struct gw_groups *own, uint32_t job, uint64_t key)
{
    struct group *room = NULL;
    for (uint16_t i = 0; i < own->cfg.count; i++) {
        struct group *group = &own->groups[i];
        if (group->members && group->job == job && group->key == key)
            return group;
        if (!group->members && !room)
            room = group;
    }
    return room;
}

static uint16_t number_of(const struct gw_groups *own, const struct group *group)
{
    return (uint16_t)(own->cfg.first_peer + (group - own->groups));
}

static void open_group(struct gw_groups *own, struct gw_datapath *datapath, struct group *group,
                       const struct gw_sock_addr *addr)
{
    uint64_t nobodys;
    group->addr = *addr;
    gw_key_random(&group->cookie, sizeof(group->cookie));
    gw_key_random(&nobodys, sizeof(nobodys));
    struct gw_datapath_peer peer = {
        .addr = group->addr,
        .entropies = 1,
        .tx_cookie = group->cookie,
        .rx_cookie = (nobodys & ~UINT64_C(0xffff)) | number_of(own, group),
    };
    gw_datapath_set_peer(datapath, &peer);
}

struct gw_attach_group gw_groups_add(struct gw_groups *own, struct gw_datapath *datapath,
                                     uint16_t peer, uint32_t job, uint64_t key,
                                     const struct gw_sock_addr *member)
{
    struct gw_attach_group told = {.port = 0};
    struct gw_sock_addr addr = own->cfg.first;
    gw_groups_remove(own, datapath, peer);
    struct group *group = find(own, job, key);
    if (!group)
        return told;
    gw_sock_addr_advance(&addr, (uint32_t)(group - own->groups));
    if (!gw_sock_addr_reach_by(&addr, gw_datapath_address(datapath), member) ||
        (group->members && group->addr.interface != addr.interface))
        return told;
    if (group->members == 0)
        open_group(own, datapath, group, &addr);
    group->job = job;
    group->key = key;
    group->members++;
    group->early = EARLY;
    own->of_peer[peer] = (uint16_t)(group - own->groups);
    told.cookie = group->cookie;
    told.port = gw_sock_addr_port(&group->addr);
    gw_sock_addr_pack(&group->addr, told.address);
    return told;
}

void gw_groups_remove(struct gw_groups *own, struct gw_datapath *datapath, uint16_t peer)
{
    uint16_t at = own->of_peer[peer];
    own->of_peer[peer] = GW_GROUP_NONE;
    if (at != GW_GROUP_NONE && --own->groups[at].members == 0)
        gw_datapath_clear_peer(datapath, number_of(own, &own->groups[at]));
}

uint16_t gw_groups_of(const struct gw_groups *own, uint16_t peer)
{
    uint16_t at = own->of_peer[peer];
    return at == GW_GROUP_NONE ? GW_GROUP_NONE : number_of(own, &own->groups[at]);
}

bool gw_groups_next(struct gw_groups *own, bool only_early, uint16_t *at, struct gw_sock_addr *to,
                    uint16_t *member)
{
    while (*at < own->cfg.count &&
           (own->groups[*at].members == 0 || (only_early && own->groups[*at].early == 0)))
        ++*at;
    if (*at == own->cfg.count)
        return false;
    own->groups[*at].early -= own->groups[*at].early > 0;
    *to = own->groups[*at].addr;
    for (*member = 0; own->of_peer[*member] != *at;)
        ++*member;
    ++*at;
    return true;
}
