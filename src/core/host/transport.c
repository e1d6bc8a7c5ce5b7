/* From a name to congestion control and grant; see transport.h. */
#include "core/host/transport.h"

#include <string.h>

#include "base/error.h"

/* ---- No window: of a flow that credit alone holds back. ---- */

static void open_init(void *state, const void *cfg, const struct gw_path *path,
                      struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)now;
    *window = (struct gw_cc_window){.cwnd = UINT32_MAX};
}

static void open_on_ack(void *state, const void *cfg, const struct gw_path *path,
                        const struct gw_cc_ack *ack, struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)ack;
    (void)window;
    (void)now;
}

static void open_on_loss(void *state, const void *cfg, const struct gw_path *path,
                         const struct gw_cc_loss *loss, struct gw_cc_window *window, gw_time now)
{
    (void)state;
    (void)cfg;
    (void)path;
    (void)loss;
    (void)window;
    (void)now;
}

static const struct gw_cc_ops open_window = {
    .algo = {.name = "open", .summary = "no window", .source = "own"},
    .init = open_init,
    .on_ack = open_on_ack,
    .on_loss = open_on_loss,
};

int gw_transport_choose(struct gw_transport *transport, const char *name)
{
    char grant[GW_TRANSPORT_NAME_MAX];
    size_t length = 0;
    while (name[length] && name[length] != '+' && length + 1 < sizeof(grant)) {
        grant[length] = name[length];
        length++;
    }
    grant[length] = '\0';
    const char *cc = name[length] == '+' ? name + length + 1 : name;
    const struct gw_algo *grant_algo = gw_registry_find(&gw_grant_registry, grant);
    const struct gw_algo *cc_algo = gw_registry_find(&gw_cc_registry, cc);
    bool is_pair = cc != name;
    if (grant_algo ? is_pair && !cc_algo : is_pair || !cc_algo)
        return GW_ERR_UNKNOWN;
    transport->grant = (const struct gw_grant_ops *)grant_algo;
    transport->cc = cc_algo ? (const struct gw_cc_ops *)cc_algo : &open_window;
    gw_algo_defaults(&transport->cc->algo, transport->cc_cfg.bytes);
    if (grant_algo)
        gw_algo_defaults(grant_algo, transport->grant_cfg.bytes);
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof(transport->name); i++)
        transport->name[i] = name[i];
    transport->name[i] = '\0';
    return GW_OK;
}
