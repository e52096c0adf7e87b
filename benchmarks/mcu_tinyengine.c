/* Runs layers from a file through onchip's kernels and through TinyEngine's, output bytes to another file.
 * benchmarks/mcu_tinyengine.py writes the layers, the tables of kernels (layers.h) and counts between marks. */
#include <string.h>

#include "tinyengine_function.h"

#include "host.h"
#include "layers.h"

enum { POINTWISE, DEPTHWISE, ADD };

typedef struct {
    int32_t kind, ours, theirs, height, width, in_c, out_c, lines, top, in_offset, out_offset, low, high, words;
    int32_t add[8]; /* left shift; offset, multiplier, shift of the second operand; of the first and the sum: factors */
} layer_t;

static int8_t in[MOST_BYTES], second[MOST_BYTES], out[MOST_BYTES], weights[MOST_WEIGHTS];
static int32_t bias[1024], multiplier[1024], shift[1024], none[1024], words[MOST_WORDS];
static int16_t buffer[16384];

static void onchip(const layer_t *l)
{
    const int8_t *lines[8];
    const int32_t row = l->width * l->in_c;
    for (int32_t y = 0; y < l->height; ++y) {
        int8_t *o = out + y * l->width * l->out_c;
        if (l->kind != DEPTHWISE) {
            lines[0] = in + y * row;
            lines[1] = second + y * row;
            plain_kernels[l->ours](lines, o, 0, l->width, words);
            continue;
        }
        const int32_t top = y - l->top, below = l->height - top;
        for (int32_t i = 0; i < l->lines; ++i)
            lines[i] = in + (top + i) * row;
        depthwise_kernels[l->ours](lines, o, 0, l->width, top < 0 ? -top : 0, below < l->lines ? below : l->lines,
                                   l->width, words);
    }
}

#ifdef FLOAT_SCALES
static float scales[1024];

/* The factor of a multiplier and a shift. */
static float factor(int32_t of, int32_t moved)
{
    float value = (float)of;
    for (int32_t i = 31 - moved; i > 0; --i)
        value *= 0.5f;
    return value;
}

static int tinyengine(const layer_t *l)
{
    const uint16_t h = (uint16_t)l->height, w = (uint16_t)l->width, c = (uint16_t)l->in_c, n = (uint16_t)l->out_c;
    if (l->kind == POINTWISE)
        return their_pointwise[l->theirs](in, w, h, c, weights, bias, scales, l->out_offset, l->in_offset, l->low,
                                          l->high, out, w, h, n, buffer);
    if (l->kind == DEPTHWISE)
        return their_depthwise[l->theirs](in, w, h, c, weights, bias, none, scales, l->out_offset, l->in_offset,
                                          l->low, l->high, in, w, h, n, buffer, (q7_t)-l->in_offset);
    add_fpreq(h * w * c, in, scales[0], (float)-l->in_offset, second, scales[1], (float)-l->add[1], scales[2],
              (float)l->out_offset, out);
    return 0;
}

static void in_floats(const layer_t *l)
{
    for (int32_t o = 0; o < l->out_c && l->kind != ADD; ++o)
        scales[o] = factor(multiplier[o], shift[o]);
    if (l->kind == ADD) {
        scales[0] = factor(l->add[4], l->add[5]);
        scales[1] = factor(l->add[2], l->add[3]);
        scales[2] = 1 / (factor(l->add[6], l->add[7]) * (float)(1 << l->add[0]));
    }
}
#else
static int tinyengine(const layer_t *l)
{
    const uint16_t h = (uint16_t)l->height, w = (uint16_t)l->width, c = (uint16_t)l->in_c, n = (uint16_t)l->out_c;
    if (l->kind == POINTWISE)
        return their_pointwise[l->theirs](in, w, h, c, weights, bias, shift, multiplier, l->out_offset, l->in_offset,
                                          l->low, l->high, out, w, h, n, buffer);
    if (l->kind == DEPTHWISE) /* in place: the output is where the input was */
        return their_depthwise[l->theirs](in, w, h, c, weights, bias, none, shift, multiplier, l->out_offset,
                                          l->in_offset, l->low, l->high, in, w, h, n, buffer, (q7_t)-l->in_offset);
    ADD_params p = {h, w, c, l->add[0], l->in_offset, l->add[4], l->add[5], l->add[1], l->add[2], l->add[3],
                    l->out_offset, l->add[6], l->add[7], l->high, l->low};
    add(h * w * c, &p, in, second, out);
    return 0;
}

static void in_floats(const layer_t *l) { (void)l; }
#endif

static uint32_t at;

static void next(int file, void *bytes, int32_t size)
{
    if (size && host_read(file, bytes, at, (uint32_t)size))
        host_exit(3);
    at += (uint32_t)size;
}

int main(void)
{
    const int from = host_open_to_read("layers.bin"), to = host_open_to_write("outputs.bin");
    for (int i = 0; i < LAYERS; ++i) {
        layer_t l;
        next(from, &l, sizeof l);
        const int32_t size = l.height * l.width * l.out_c, given = l.height * l.width * l.in_c;
        next(from, in, given);
        next(from, second, l.kind == ADD ? given : 0);
        next(from, weights, l.kind == ADD ? 0 : l.kind == DEPTHWISE ? l.lines * l.lines * l.out_c : l.in_c * l.out_c);
        next(from, bias, l.kind == ADD ? 0 : 4 * l.out_c);
        next(from, multiplier, l.kind == ADD ? 0 : 4 * l.out_c);
        next(from, shift, l.kind == ADD ? 0 : 4 * l.out_c);
        next(from, words, 4 * l.words);
        in_floats(&l);
        memset(out, 0x55, (uint32_t)size);
        marks[2 * i + 1]();
        onchip(&l);
        onchip_mark_0();
        host_write(to, out, (uint32_t)size);
        memset(out, 0x55, (uint32_t)size);
        marks[2 * i + 2]();
        const int wrong = tinyengine(&l);
        onchip_mark_0();
        if (wrong)
            host_exit(4);
        host_write(to, l.kind == DEPTHWISE ? in : out, (uint32_t)size);
    }
    return 0;
}
