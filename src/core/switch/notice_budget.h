/*
 * Who may lower the threshold of a port, and for how long: the time of one port, divided among
 * those who announce bursts there.
 *
 * A job's number is what a stranger says, and so is a sender's address where routes are a table.
 * The link that a notice came by is what nobody can make up. So a port keeps an *account* for each
 * job and link: a stranger who uses the number of another job draws on an account of his own link,
 * and whoever makes up many jobs divides his link's part among them.
 *
 * A port gives `share` of all time, in equal parts to the links that announce there, and a link's
 * part in equal parts to its jobs; what one cannot take since it has saved up its part of `save`,
 * the others get. While the port is low, time is taken in equal parts from those who keep it so. A
 * job is honoured unless its account is in debt, so a debt is at most what one announcement may
 * cost (`hold`). When there is no room, a link with few jobs takes it from the one with most, and
 * a debt with it; else a new job only takes what has been idle for long.
 *
 * Invariant: balances and what is spare, together, are what was given less what was taken, and at
 * most `save`. So in any time T a port is low for at most
 *
 *     share T + save + accounts x hold
 *
 * and a job that keeps it low for less than share / (links x jobs of its link) is always honoured.
 */
#ifndef GW_CORE_NOTICE_BUDGET_H
#define GW_CORE_NOTICE_BUDGET_H

#include <stdbool.h>

#include "base/fixed.h"
#include "base/time.h"

enum {
    GW_NOTICE_ACCOUNTS_MAX = 256, /* of a port: they are gone through one by one */
};

#define GW_NOTICE_ACCOUNT_NONE UINT32_MAX

/* An account that nobody has used for so long makes room for others of its link: above the time
 * between two bursts of a training job, so that made up jobs do not drive out those that are. */
#define GW_NOTICE_KEEP (10 * GW_S)

/* What holds for all ports of a switch. */
struct gw_notice_rules {
    gw_q16 share; /* of all time, 0 to 1 */
    gw_time save; /* most that a port may have saved up */
    uint32_t accounts_max;
};

struct gw_notice_account {
    uint32_t job;
    uint16_t in;     /* link */
    uint16_t mates;  /* accounts of the same link, with this one; 0: it is free */
    uint32_t open;   /* honoured announcements: while there are any, it keeps the port low */
    int64_t balance; /* time; below 0: debt */
    int64_t limit;   /* its part of what may be saved up */
    gw_time used;    /* when it was asked for last */
};

struct gw_notice_budget {
    struct gw_notice_account *accounts; /* accounts_max */
    uint32_t links;                     /* that have an account */
    uint32_t low;                       /* accounts that keep the port low */
    int64_t spare;                      /* time that is on no account, for whoever comes */
    gw_time at;                         /* until then all is booked */
};

/* A port where nobody has announced anything; the accounts must be all zero. */
void gw_notice_budget_init(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           struct gw_notice_account *accounts);

/* Books the time until now; to be called before any of the functions below. */
void gw_notice_budget_book(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           gw_time now);

/* The account of a job and link, or GW_NOTICE_ACCOUNT_NONE. */
uint32_t gw_notice_budget_find(const struct gw_notice_budget *budget,
                               const struct gw_notice_rules *rules, uint32_t job, uint16_t in);

/*
 * The account that a new job of a link may have: one that is free, or one that must be given up for
 * it, whose announcements the caller closes before; or GW_NOTICE_ACCOUNT_NONE.
 */
uint32_t gw_notice_budget_room(const struct gw_notice_budget *budget,
                               const struct gw_notice_rules *rules, uint16_t in);

/* Makes it the new job's. */
void gw_notice_budget_take(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           uint32_t at, uint32_t job, uint16_t in);

/* The port may save up another amount from now on, as `rules` says. */
void gw_notice_budget_limit(struct gw_notice_budget *budget, const struct gw_notice_rules *rules);

/* Whether the announcements of a job are honoured. */
static inline bool gw_notice_budget_allows(const struct gw_notice_rules *rules,
                                           const struct gw_notice_account *account)
{
    return rules->share > 0 && account->balance >= 0;
}

/* One more announcement is open, or one fewer. */
void gw_notice_budget_open(struct gw_notice_budget *budget, uint32_t at);
void gw_notice_budget_close(struct gw_notice_budget *budget, uint32_t at);

/* Fails an assertion unless all books agree. */
void gw_notice_budget_check(const struct gw_notice_budget *budget,
                            const struct gw_notice_rules *rules);

#endif
