/* The time of a port, divided; see notice_budget.h. */
#include "core/switch/notice_budget.h"

#include <stddef.h>

#include "base/assert.h"

enum {
    WEIGHT = 1 << 16, /* of a link, divided among its accounts */
};

void gw_notice_budget_init(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           struct gw_notice_account *accounts)
{
    GW_ASSERT(rules->accounts_max >= 1 && rules->accounts_max <= GW_NOTICE_ACCOUNTS_MAX);
    GW_ASSERT(rules->share >= 0 && rules->share <= GW_Q16_ONE && rules->save <= INT64_MAX / 4);
    *budget = (struct gw_notice_budget){.accounts = accounts, .spare = (int64_t)rules->save};
}

static bool is_used(const struct gw_notice_account *account)
{
    return account->mates != 0;
}

/* Takes time from those who kept the port low, rounded up: never less than has passed. */
static void charge(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                   gw_time time)
{
    int64_t part = (int64_t)((time + budget->low - 1) / budget->low);
    for (uint32_t i = 0; i < rules->accounts_max; i++)
        if (budget->accounts[i].open)
            budget->accounts[i].balance -= part;
}

/*
 * Divides `time` among the accounts that may save more, each up to its limit, and takes what they
 * get from it. True: one of them got less than its part, so that others may have more.
 */
static bool give(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                 gw_time *time)
{
    uint64_t weights = 0;
    for (uint32_t i = 0; i < rules->accounts_max; i++) {
        const struct gw_notice_account *account = &budget->accounts[i];
        if (is_used(account) && account->balance < account->limit)
            weights += WEIGHT / account->mates;
    }
    gw_time all = *time;
    bool is_short = false;
    for (uint32_t i = 0; i < rules->accounts_max && weights; i++) {
        struct gw_notice_account *account = &budget->accounts[i];
        if (!is_used(account) || account->balance >= account->limit)
            continue;
        uint64_t fraction = ((uint64_t)(WEIGHT / account->mates) << 32) / weights;
        gw_time part = (gw_time)(((unsigned __int128)all * fraction) >> 32);
        gw_time room = (gw_time)(account->limit - account->balance);
        if (part > room) {
            part = room;
            is_short = true;
        }
        account->balance += (int64_t)part;
        *time -= part;
    }
    return is_short;
}

/* What nobody may save is spare, as far as the port may save it: the rest is lost. */
static void keep_spare(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                       gw_time time)
{
    int64_t room = (int64_t)rules->save;
    for (uint32_t i = 0; i < rules->accounts_max; i++)
        if (is_used(&budget->accounts[i]) && budget->accounts[i].balance > 0)
            room -= budget->accounts[i].balance;
    budget->spare += (int64_t)time;
    if (budget->spare > room)
        budget->spare = room;
}

void gw_notice_budget_book(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           gw_time now)
{
    gw_time passed = now - budget->at;
    budget->at = now;
    if (passed == 0 || budget->links == 0)
        return;
    if (passed > INT64_MAX / 4)
        passed = INT64_MAX / 4;
    if (budget->low)
        charge(budget, rules, passed);
    gw_time time = (gw_time)gw_q16_mul((gw_q16)passed, rules->share);
    while (give(budget, rules, &time))
        ; /* each round fills an account */
    keep_spare(budget, rules, time);
}

uint32_t gw_notice_budget_find(const struct gw_notice_budget *budget,
                               const struct gw_notice_rules *rules, uint32_t job, uint16_t in)
{
    for (uint32_t i = 0; i < rules->accounts_max; i++) {
        const struct gw_notice_account *account = &budget->accounts[i];
        if (account->job == job && account->in == in && is_used(account))
            return i;
    }
    return GW_NOTICE_ACCOUNT_NONE;
}

static uint32_t mates_of(const struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                         uint16_t in)
{
    for (uint32_t i = 0; i < rules->accounts_max; i++)
        if (is_used(&budget->accounts[i]) && budget->accounts[i].in == in)
            return budget->accounts[i].mates;
    return 0;
}

/* Of two accounts of links that have more than their part of the room, whether the first one goes:
 * from the largest link, and there who owes least, since whoever comes takes that over. */
static bool goes_before(const struct gw_notice_account *a, const struct gw_notice_account *b)
{
    return a->mates != b->mates ? a->mates > b->mates : a->balance > b->balance;
}

uint32_t gw_notice_budget_room(const struct gw_notice_budget *budget,
                               const struct gw_notice_rules *rules, uint16_t in)
{
    const struct gw_notice_account *first = NULL, *oldest = NULL;
    uint32_t own = mates_of(budget, rules, in);
    for (uint32_t i = 0; i < rules->accounts_max; i++) {
        const struct gw_notice_account *account = &budget->accounts[i];
        if (!is_used(account))
            return i;
        bool is_idle = !account->open && account->balance >= account->limit &&
                       budget->at - account->used >= GW_NOTICE_KEEP;
        if (account->mates > own + 1 && (!first || goes_before(account, first)))
            first = account;
        if (account->mates >= own && is_idle &&
            (!oldest || gw_time_before(account->used, oldest->used)))
            oldest = account;
    }
    const struct gw_notice_account *found = first ? first : oldest;
    return found ? (uint32_t)(found - budget->accounts) : GW_NOTICE_ACCOUNT_NONE;
}

static void set_mates(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                      uint16_t in, uint32_t mates)
{
    for (uint32_t i = 0; i < rules->accounts_max; i++)
        if (is_used(&budget->accounts[i]) && budget->accounts[i].in == in)
            budget->accounts[i].mates = (uint16_t)mates;
}

/* Its job is forgotten; what it had is spare. Returns its debt, 0 or less. */
static int64_t forget(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                      struct gw_notice_account *account)
{
    uint16_t in = account->in, mates = account->mates;
    int64_t debt = account->balance < 0 ? account->balance : 0;
    GW_ASSERT(account->open == 0);
    budget->spare += account->balance - debt;
    *account = (struct gw_notice_account){0};
    if (mates == 1)
        budget->links--;
    set_mates(budget, rules, in, mates - 1u);
    return debt;
}

/* Who may save less than before gives the rest up, for whoever comes. */
static void set_limits(struct gw_notice_budget *budget, const struct gw_notice_rules *rules)
{
    for (uint32_t i = 0; i < rules->accounts_max; i++) {
        struct gw_notice_account *account = &budget->accounts[i];
        if (!is_used(account))
            continue;
        account->limit = (int64_t)(rules->save / ((uint64_t)budget->links * account->mates));
        if (account->balance <= account->limit)
            continue;
        budget->spare += account->balance - account->limit;
        account->balance = account->limit;
    }
}

void gw_notice_budget_limit(struct gw_notice_budget *budget, const struct gw_notice_rules *rules)
{
    set_limits(budget, rules);
    if (budget->links)
        keep_spare(budget, rules, 0);
    else
        budget->spare = (int64_t)rules->save;
}

void gw_notice_budget_take(struct gw_notice_budget *budget, const struct gw_notice_rules *rules,
                           uint32_t at, uint32_t job, uint16_t in)
{
    struct gw_notice_account *account = &budget->accounts[at];
    int64_t debt = is_used(account) ? forget(budget, rules, account) : 0;
    uint32_t mates = mates_of(budget, rules, in) + 1;
    budget->links += mates == 1;
    *account = (struct gw_notice_account){
        .job = job, .in = in, .mates = (uint16_t)mates, .used = budget->at};
    set_mates(budget, rules, in, mates);
    set_limits(budget, rules);
    int64_t part = budget->spare < account->limit ? budget->spare : account->limit;
    account->balance = debt + part;
    budget->spare -= part;
}

void gw_notice_budget_open(struct gw_notice_budget *budget, uint32_t at)
{
    budget->low += budget->accounts[at].open++ == 0;
    budget->accounts[at].used = budget->at;
}

void gw_notice_budget_close(struct gw_notice_budget *budget, uint32_t at)
{
    GW_ASSERT(budget->accounts[at].open);
    budget->low -= --budget->accounts[at].open == 0;
}

void gw_notice_budget_check(const struct gw_notice_budget *budget,
                            const struct gw_notice_rules *rules)
{
    uint32_t low = 0, links = 0;
    int64_t saved = budget->spare;
    for (uint32_t i = 0; i < rules->accounts_max; i++) {
        const struct gw_notice_account *account = &budget->accounts[i];
        uint32_t mates = 0, before = 0;
        for (uint32_t j = 0; j < rules->accounts_max && is_used(account); j++) {
            const struct gw_notice_account *other = &budget->accounts[j];
            if (!is_used(other) || other->in != account->in)
                continue;
            GW_ASSERT(i == j || other->job != account->job);
            before += j < i;
            mates++;
        }
        GW_ASSERT(account->mates == mates && account->balance <= account->limit);
        links += mates && !before;
        low += account->open != 0;
        saved += account->balance > 0 ? account->balance : 0;
    }
    GW_ASSERT(budget->low == low && budget->links == links);
    GW_ASSERT(budget->spare >= 0 && saved <= (int64_t)rules->save);
}
