/* Lists by index against arrays: several lists share the elements, and links are bit-fields. */
#include "support.h"

#include "base/index_list.h"
#include "base/prng.h"

enum {
    ELEMENTS = 13,
    LISTS = 3, /* their heads follow the elements: 16 in all, four bits */
    STEPS = 20000,
    SEEDS = 4,
    ON_NONE = LISTS,
};

struct element {
    uint32_t prev : 4, next : 4;
    uint32_t own : 24; /* no list's business */
};

GW_INDEX_LIST(list, struct element)

/* The members of each list in order. */
struct model {
    uint32_t members[LISTS][ELEMENTS];
    uint32_t counts[LISTS];
    uint32_t list_of[ELEMENTS]; /* or ON_NONE */
};

static void model_insert(struct model *model, uint32_t list, uint32_t place, uint32_t at)
{
    uint32_t *members = model->members[list];
    memmove(members + place + 1, members + place,
            (model->counts[list] - place) * sizeof(members[0]));
    members[place] = at;
    model->counts[list]++;
    model->list_of[at] = list;
}

static void model_remove(struct model *model, uint32_t at)
{
    uint32_t list = model->list_of[at];
    uint32_t *members = model->members[list];
    uint32_t place = 0;
    while (members[place] != at)
        place++;
    model->counts[list]--;
    memmove(members + place, members + place + 1,
            (model->counts[list] - place) * sizeof(members[0]));
    model->list_of[at] = ON_NONE;
}

static void check_against_model(const struct element *elements, const struct model *model)
{
    for (uint32_t list = 0; list < LISTS; list++) {
        uint32_t head = ELEMENTS + list, count = model->counts[list];
        assert_int_equal(list_is_empty(elements, head), count == 0);
        assert_int_equal(list_first(elements, head), count ? model->members[list][0] : head);
        uint32_t before = head;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = elements[before].next;
            assert_int_equal(at, model->members[list][i]);
            assert_int_equal(elements[at].prev, before);
            before = at;
        }
        assert_int_equal(elements[before].next, head);
        assert_int_equal(elements[head].prev, before);
    }
    for (uint32_t at = 0; at < ELEMENTS; at++)
        assert_int_equal(elements[at].own, at);
}

/* Takes an element off its list, or puts it on one: first, last or before a member. */
static void step_both(struct element *elements, struct model *model, struct gw_prng *prng)
{
    uint32_t at = gw_prng_below(prng, ELEMENTS);
    if (model->list_of[at] != ON_NONE) {
        list_remove(elements, at);
        model_remove(model, at);
        return;
    }
    uint32_t list = gw_prng_below(prng, LISTS), head = ELEMENTS + list;
    uint32_t count = model->counts[list];
    uint32_t place = gw_prng_below(prng, count + 1);
    switch (gw_prng_below(prng, 3)) {
    case 0:
        list_push(elements, head, at);
        model_insert(model, list, 0, at);
        break;
    case 1:
        list_append(elements, head, at);
        model_insert(model, list, count, at);
        break;
    default:
        list_append(elements, place < count ? model->members[list][place] : head, at);
        model_insert(model, list, place, at);
    }
}

static void index_list_append__agrees_with_arrays(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        struct gw_prng prng = {.state = seed};
        struct element elements[ELEMENTS + LISTS] = {{.own = 0}};
        struct model model = {.counts = {0}};
        for (uint32_t at = 0; at < ELEMENTS; at++) {
            elements[at].own = at;
            model.list_of[at] = ON_NONE;
        }
        for (uint32_t list = 0; list < LISTS; list++)
            list_init(elements, ELEMENTS + list);
        for (int step = 0; step < STEPS; step++) {
            step_both(elements, &model, &prng);
            check_against_model(elements, &model);
        }
    }
}

static void index_list_first__of_an_empty_list_is_its_head(void **state)
{
    (void)state;
    struct element elements[2];
    list_init(elements, 1);
    assert_true(list_is_empty(elements, 1));
    assert_int_equal(list_first(elements, 1), 1);
    list_append(elements, 1, 0);
    assert_false(list_is_empty(elements, 1));
    assert_int_equal(list_first(elements, 1), 0);
    list_remove(elements, 0);
    assert_true(list_is_empty(elements, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_list_append__agrees_with_arrays),
        cmocka_unit_test(index_list_first__of_an_empty_list_is_its_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
