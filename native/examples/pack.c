/* Packs three buffers, first to last, and prints where they lie. C99. */
#include <stdio.h>

#include "onchip/pack.h"

int main(void) {
    const onchip_buffer buffers[] = {
        {0, 2, 4096, 64, -1, NULL, 0},  /* live in steps 0 and 1 */
        {1, 3, 1024, 64, -1, NULL, 0},  /* live in steps 1 and 2 */
        {2, 4, 4096, 64, -1, NULL, 0},  /* live in steps 2 and 3 */
    };
    int64_t offsets[3], extent, bound;
    const onchip_status status = onchip_pack_lowest(buffers, 3, NULL, offsets, &extent, &bound);
    int i;
    if (status != ONCHIP_PACKED) {
        fprintf(stderr, "%s\n", onchip_status_text(status));
        return 1;
    }
    for (i = 0; i < 3; ++i) printf("buffer %d at %lld\n", i, (long long)offsets[i]);
    printf("%lld bytes%s\n", (long long)extent, extent == bound ? ", the least" : "");
    return onchip_abi() == ONCHIP_ABI ? 0 : 1;
}
