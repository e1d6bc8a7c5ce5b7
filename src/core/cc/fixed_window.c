/*
 * A window that never changes, and optionally a fixed pace: for tests, calibration, and traffic
 * whose rate the scenario decides.
 *
 * A window below one packet cannot be kept by counting, since one packet is always allowed; it is
 * kept by pacing instead: `window` bytes per base RTT, as Swift does (Swift, section 3).
 *
 * Invariant: the window is the same from start to end of the flow.
 */
#include "core/cc/cc.h"

#include "base/assert.h"
#include "core/cc/window.h"

struct fixed_cfg {
    uint64_t window;
    gw_q16 bdp;
    uint64_t rate;
};

/* Algorithms without private memory still name one byte, so that every state has an address. */
enum {
    FIXED_STATE_SIZE = 1,
};

/* At least 1 byte; factors above 32768 count as 32768. */
static uint64_t bdp_multiple(gw_q16 factor, const struct gw_path *path)
{
    const gw_q16 largest = 32768 * GW_Q16_ONE;
    gw_q16 bytes = gw_q16_mul(factor < largest ? factor : largest, path->bdp);
    return bytes > 0 ? (uint64_t)bytes : 1;
}

static void fixed_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_cc_window *window, gw_time now)
{
    const struct fixed_cfg *cfg = config;
    (void)state;
    (void)now;
    GW_ASSERT(path->mtu > 0);
    uint64_t cwnd = cfg->window ? cfg->window : bdp_multiple(cfg->bdp, path);
    gw_byte_time pace = cfg->rate ? gw_byte_time_from_bps(cfg->rate) : 0;
    if (cwnd < path->mtu) {
        gw_byte_time slow = gw_window_pace(path, path->brtt, cwnd);
        pace = pace > slow ? pace : slow;
    }
    *window = (struct gw_cc_window){.cwnd = cwnd, .pace = pace};
}

static const struct gw_param params[] = {
    GW_PARAM(struct fixed_cfg, BYTES, window, "0",
             "window in bytes; 0: as `bdp` says (own choice)"),
    GW_PARAM(struct fixed_cfg, Q16, bdp, "1", "window as a multiple of the bdp (own choice)"),
    GW_PARAM(struct fixed_cfg, RATE, rate, NULL, "pace of sending; unset: not paced (own choice)"),
};

const struct gw_cc_ops gw_cc_fixed = {
    .algo =
        {
            .name = "fixed",
            .summary = "constant window, optionally paced",
            .source = "own",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct fixed_cfg),
            .state_size = FIXED_STATE_SIZE,
        },
    .init = fixed_init,
    .on_ack = gw_cc_ignore_ack,
    .on_loss = gw_cc_ignore_loss,
};
