/*
 * A network without delay for tests of the attach protocol: sides with their neighbours, messages
 * that can be lost, changed and kept, and a clock that jumps from deadline to deadline. Keys and
 * random numbers are the same in every run. Events are checked: what goes down was up.
 */
#ifndef GW_TESTS_ATTACH_NET_H
#define GW_TESTS_ATTACH_NET_H

#include "net/attach/neighbours.h"

enum {
    GW_TEST_SIDES_MAX = 8,
    GW_TEST_PEERS_MAX = 512,
    GW_TEST_MESSAGES_MAX = 8192, /* that are kept; and that may be on the way */
};

#define GW_TEST_BEAT    (200 * GW_MS)
#define GW_TEST_SILENCE (2 * GW_S)

struct gw_test_message {
    uint8_t from, to; /* sides */
    uint8_t bytes[GW_ATTACH_SIZE];
};

/* What a side is, and what has happened to it. */
struct gw_test_side {
    struct gw_neighbours_cfg cfg; /* change it before gw_test_attach_start() */
    struct gw_key keys[2];
    struct gw_sock_addr addr;
    struct gw_neighbours *own; /* NULL: it is not running */
    uint32_t ups, downs, refusals;
    uint32_t hears;                    /* changes of what the others hear */
    struct gw_neighbour_event last;    /* of any kind */
    struct gw_neighbour_event last_up; /* the other end's cookie is in it */
    bool is_up[GW_TEST_PEERS_MAX];     /* by number of the session */
    bool is_deaf;                      /* nothing is polled */
};

/* Whether a message arrives; it may be changed. `number` counts them from 0. */
typedef bool gw_test_fate(void *context, uint32_t number, struct gw_test_message *message);

struct gw_test_attach {
    struct gw_test_side sides[GW_TEST_SIDES_MAX];
    gw_time now;
    gw_test_fate *fate; /* NULL: all arrive */
    void *context;
    uint32_t sent, delivered;
    struct gw_test_message *messages; /* all that were sent, in order */
};

/*
 * All sides know the key of "secret", accept, and have room for 16 neighbours; none runs yet. There
 * is one network at a time.
 */
struct gw_test_attach *gw_test_attach_open(uint64_t seed);
void gw_test_attach_close(struct gw_test_attach *net);

/* Starts a side, or starts it again with nothing remembered. */
void gw_test_attach_start(struct gw_test_attach *net, int side);

/* It is gone without a word. */
void gw_test_attach_stop(struct gw_test_attach *net, int side);

/* The job that a side says that it is of, when it dials: the same for all who have its key. */
uint32_t gw_test_attach_job(const struct gw_test_attach *net, int side);

/* Side `from` dials side `to`; returns the number of the dial. */
int gw_test_attach_dial(struct gw_test_attach *net, int from, int to);

/* Sends a message as if `from` had sent it. */
void gw_test_attach_send(struct gw_test_attach *net, int from, int to,
                         const uint8_t bytes[GW_ATTACH_SIZE]);

/* Side `side` refuses a session that is up; sending the message is up to the caller. */
void gw_test_attach_refuse(struct gw_test_attach *net, int side, uint16_t peer,
                           enum gw_attach_reason reason, uint8_t bytes[GW_ATTACH_SIZE]);

/* Lets everything happen for so long; 0: what happens now. */
void gw_test_attach_run(struct gw_test_attach *net, gw_time duration);

/* Events of all sides up to now; a test for "nothing has changed". */
uint32_t gw_test_attach_events(const struct gw_test_attach *net);

#endif
