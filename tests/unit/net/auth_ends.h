/* The two ends of a session that protects its packets, with the same key and cookies in every run.
 */
#ifndef GW_TESTS_AUTH_ENDS_H
#define GW_TESTS_AUTH_ENDS_H

#include "support.h"

#include "net/auth.h"

static const uint64_t turn = UINT64_C(1) << 32; /* where the low bits of a number wrap */

struct ends {
    struct gw_key key;
    uint8_t session[GW_ATTACH_NONCE_SIZE];
    struct gw_auth_cfg cfg;
    struct gw_auth initiator, responder;
};

/* Both begin, with what they know by now. */
static inline void ends_begin(struct ends *ends)
{
    ends->cfg.key = &ends->key;
    ends->cfg.session = ends->session;
    ends->cfg.is_initiator = true;
    gw_auth_init(&ends->initiator, &ends->cfg);
    ends->cfg.is_initiator = false;
    gw_auth_init(&ends->responder, &ends->cfg);
}

static inline void ends_open(struct ends *ends, bool encrypts)
{
    assert_int_equal(gw_key_setup(), 0);
    gw_key_from_text("secret", 6, &ends->key);
    for (uint8_t i = 0; i < GW_ATTACH_NONCE_SIZE; i++)
        ends->session[i] = i;
    ends->cfg = (struct gw_auth_cfg){
        .initiators_cookie = UINT64_C(0x1122334455667788),
        .responders_cookie = UINT64_C(0x99aabbccddeeff00),
        .encrypts = encrypts,
    };
    ends_begin(ends);
}

/* As if so many packets had been sent, and had arrived. */
static inline void ends_skip_to(struct ends *ends, uint64_t number)
{
    ends->initiator.tx_last = ends->responder.rx_last = number;
}

#endif
