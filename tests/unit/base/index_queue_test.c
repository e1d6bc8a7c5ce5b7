/* The queue of indices against an array that is shifted, in rooms of every size. */
#include "support.h"

#include "base/index_queue.h"
#include "base/prng.h"

enum {
    ROOM_MAX = 9, /* powers of two and others */
    STEPS = 20000,
};

/* What is queued, the oldest first. */
struct model {
    uint32_t values[ROOM_MAX];
    uint32_t count;
};

static void check_against_model(const struct gw_index_queue *queue, const uint32_t *elements,
                                const struct model *model)
{
    assert_int_equal(queue->count, model->count);
    assert_true(queue->head < queue->room);
    assert_int_equal(gw_index_queue_is_full(queue), model->count == queue->room);
    for (uint32_t i = 0; i < model->count; i++)
        assert_int_equal(elements[gw_index_queue_at(queue, i)], model->values[i]);
}

static void model_pop(struct model *model, uint32_t count)
{
    model->count -= count;
    memmove(model->values, model->values + count, model->count * sizeof(model->values[0]));
}

static void step_both(struct gw_index_queue *queue, uint32_t *elements, struct model *model,
                      struct gw_prng *prng)
{
    uint32_t value = (uint32_t)gw_prng_next(prng);
    switch (gw_prng_below(prng, 8)) {
    case 0: {
        uint32_t count = gw_prng_below(prng, model->count + 1);
        uint32_t first = gw_index_queue_pop_many(queue, count);
        if (count > 0)
            assert_int_equal(elements[first], model->values[0]);
        model_pop(model, count);
        break;
    }
    case 1:
    case 2:
    case 3:
        if (model->count > 0) {
            assert_int_equal(elements[gw_index_queue_pop(queue)], model->values[0]);
            model_pop(model, 1);
        }
        break;
    default:
        if (!gw_index_queue_is_full(queue)) {
            uint32_t next = gw_index_queue_at(queue, queue->count);
            uint32_t element = gw_index_queue_push(queue);
            assert_int_equal(element, next);
            elements[element] = value;
            model->values[model->count++] = value;
        }
    }
}

static void index_queue_push__agrees_with_a_shifted_array(void **state)
{
    (void)state;
    for (uint32_t room = 1; room <= ROOM_MAX; room++) {
        print_message("seed and room %u\n", (unsigned)room);
        struct gw_prng prng = {.state = room};
        struct gw_index_queue queue;
        gw_index_queue_init(&queue, room);
        uint32_t elements[ROOM_MAX];
        struct model model = {.count = 0};
        bool was_full = false;
        for (int step = 0; step < STEPS; step++) {
            step_both(&queue, elements, &model, &prng);
            check_against_model(&queue, elements, &model);
            was_full |= gw_index_queue_is_full(&queue);
        }
        assert_true(was_full);
    }
}

static void index_queue_clear__leaves_the_whole_room(void **state)
{
    (void)state;
    struct gw_index_queue queue;
    gw_index_queue_init(&queue, 3);
    for (int i = 0; i < 2; i++)
        gw_index_queue_push(&queue);
    gw_index_queue_pop(&queue);
    gw_index_queue_clear(&queue);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(gw_index_queue_is_full(&queue));
        assert_int_equal(gw_index_queue_push(&queue), i);
    }
    assert_true(gw_index_queue_is_full(&queue));
}

static void index_queue_init__of_no_room_is_full_and_empty(void **state)
{
    (void)state;
    struct gw_index_queue queue;
    gw_index_queue_init(&queue, 0);
    assert_true(gw_index_queue_is_full(&queue));
    assert_int_equal(queue.count, 0);
    gw_index_queue_pop_many(&queue, 0);
    assert_int_equal(queue.head, 0);
}

/* Indices of the largest room do not overflow. */
static void index_queue_at__wraps_in_the_largest_room(void **state)
{
    (void)state;
    const uint32_t room = UINT32_C(1) << 31;
    struct gw_index_queue queue;
    gw_index_queue_init(&queue, room);
    queue.head = room - 1;
    queue.count = room;
    assert_int_equal(gw_index_queue_at(&queue, 0), room - 1);
    assert_int_equal(gw_index_queue_at(&queue, 1), 0);
    assert_int_equal(gw_index_queue_at(&queue, room - 1), room - 2);
    assert_int_equal(gw_index_queue_pop_many(&queue, room), room - 1);
    assert_int_equal(queue.head, room - 1);
    assert_int_equal(queue.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_queue_push__agrees_with_a_shifted_array),
        cmocka_unit_test(index_queue_clear__leaves_the_whole_room),
        cmocka_unit_test(index_queue_init__of_no_room_is_full_and_empty),
        cmocka_unit_test(index_queue_at__wraps_in_the_largest_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
