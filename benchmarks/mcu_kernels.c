/* Runs layers from a file through onchip's kernels and through CMSIS-NN's, output bytes to another file.
 * benchmarks/mcu_kernels.py writes the layers, the table of kernels (layers.h) and counts between marks. */
#include <stdint.h>
#include <string.h>

#include "arm_nnfunctions.h"
#include "host.h"
#include "layers.h"

enum { CONV, CONV_WITH_PATCH, DEPTHWISE };

typedef struct {
    int32_t kind, kernel, in_h, in_w, in_c, out_h, out_w, out_c, kh, kw, sh, sw, dh, dw, top, left;
    int32_t in_offset, out_offset, low, high, per_group, multiplier, words, depthwise;
} layer_t;

static int8_t in[200000], out[200000], weights[200000];
static int32_t bias[2048], multiplier[2048], shift[2048], words[80000], scratch[16384];

static void onchip(const layer_t *l)
{
    const int8_t *lines[64];
    for (int32_t y = 0; y < l->out_h; ++y) {
        const int32_t top = y * l->sh - l->top;
        int32_t first = 0, last = l->kh;
        for (int32_t i = 0; i < l->kh; ++i)
            lines[i] = in + (top + i * l->dh) * l->in_w * l->in_c;
        while (top + first * l->dh < 0)
            ++first;
        while (top + (last - 1) * l->dh >= l->in_h)
            --last;
        int8_t *o = out + y * l->out_w * l->out_c;
        if (l->kind == CONV)
            conv_kernels[l->kernel](lines, o, 0, l->out_w, words);
        else if (l->kind == CONV_WITH_PATCH)
            patch_kernels[l->kernel](lines, o, 0, l->out_w, first, last, l->in_w, (int8_t *)scratch, words);
        else
            depthwise_kernels[l->kernel](lines, o, 0, l->out_w, first, last, l->in_w, words);
    }
}

static int cmsis(const layer_t *l)
{
    cmsis_nn_context context = {scratch, sizeof scratch};
    cmsis_nn_per_channel_quant_params quant = {multiplier, shift};
    cmsis_nn_dims x = {1, l->in_h, l->in_w, l->in_c}, y = {1, l->out_h, l->out_w, l->out_c};
    cmsis_nn_dims b = {1, 1, 1, l->out_c};
    if (l->depthwise) {
        cmsis_nn_dims k = {1, l->kh, l->kw, l->out_c};
        cmsis_nn_dw_conv_params p = {l->in_offset, l->out_offset, l->multiplier, {l->sw, l->sh},
                                     {l->left, l->top}, {l->dw, l->dh}, {l->low, l->high}};
        return arm_depthwise_conv_wrapper_s8(&context, &p, &quant, &x, in, &k, weights, &b, bias, &y, out);
    }
    cmsis_nn_dims k = {l->out_c, l->kh, l->kw, l->per_group};
    cmsis_nn_conv_params p = {l->in_offset, l->out_offset, {l->sw, l->sh},
                              {l->left, l->top}, {l->dw, l->dh}, {l->low, l->high}};
    return arm_convolve_wrapper_s8(&context, &p, &quant, &x, in, &k, weights, &b, bias, &y, out);
}

static uint32_t at;

static void next(int file, void *bytes, int32_t size)
{
    if (host_read(file, bytes, at, (uint32_t)size))
        host_exit(3);
    at += (uint32_t)size;
}

int main(void)
{
    const int from = host_open_to_read("layers.bin"), to = host_open_to_write("outputs.bin");
    for (int i = 0; i < LAYERS; ++i) {
        layer_t l;
        next(from, &l, sizeof l);
        next(from, in, l.in_h * l.in_w * l.in_c);
        next(from, weights, l.kh * l.kw * l.per_group * l.out_c);
        next(from, bias, 4 * l.out_c);
        next(from, multiplier, 4 * l.out_c);
        next(from, shift, 4 * l.out_c);
        next(from, words, 4 * l.words);
        const int32_t size = l.out_h * l.out_w * l.out_c;
        memset(out, 0x55, (uint32_t)size);
        marks[2 * i + 1]();
        onchip(&l);
        onchip_mark_0();
        host_write(to, out, (uint32_t)size);
        memset(out, 0x55, (uint32_t)size);
        marks[2 * i + 2]();
        const int wrong = cmsis(&l);
        onchip_mark_0();
        if (wrong)
            host_exit(4);
        host_write(to, out, (uint32_t)size);
    }
    return 0;
}
