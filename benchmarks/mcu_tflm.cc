// A .tflite file in TensorFlow Lite Micro with CMSIS-NN on the emulated core: one inference, counted.
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" {
#include "host.h"
extern const unsigned char model_file[];
void onchip_mark_0(void);
void onchip_mark_1(void);
[[noreturn]] void abort(void) { host_exit(95); }
void __cxa_pure_virtual(void) { host_exit(90); }
void DebugLog(const char *, va_list) {}
int DebugVsnprintf(char *buffer, size_t size, const char *, va_list) { if (size) *buffer = 0; return 0; }
int __aeabi_atexit(void *, void (*)(void *), void *) { return 0; }
void *__dso_handle;
}
void *operator new(std::size_t) { host_exit(91); }
void operator delete(void *) noexcept {}
void operator delete(void *, std::size_t) noexcept {}

alignas(16) static std::uint8_t arena[ARENA_BYTES];
alignas(tflite::MicroInterpreter) static std::uint8_t room[sizeof(tflite::MicroInterpreter)];
using Resolver = tflite::MicroMutableOpResolver<OPERATORS + 1>;
alignas(Resolver) static std::uint8_t resolver_room[sizeof(Resolver)];

extern "C" int run_tflm(void)
{
    Resolver &resolver = *new (resolver_room) Resolver();
    ADD_OPERATORS
    const tflite::Model *model = tflite::GetModel(model_file);
    auto *allocator = tflite::MicroAllocator::Create(arena, ARENA_BYTES);
    auto *variables = VARIABLES ? tflite::MicroResourceVariables::Create(allocator, VARIABLES) : nullptr;
    auto &interpreter = *new (room) tflite::MicroInterpreter(model, resolver, allocator, variables);
    if (interpreter.AllocateTensors() != kTfLiteOk)
        return 92;
    host_report("arena", interpreter.arena_used_bytes());
    if (!INVOKE)
        return 0;
    const int in = host_open_to_read("in"), out = host_open_to_write("out");
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < interpreter.inputs_size(); ++i) {
        TfLiteTensor *input = interpreter.input(i);
        if (host_read(in, input->data.raw, at, input->bytes))
            return 93;
        at += input->bytes;
    }
    onchip_mark_0();
    const TfLiteStatus status = interpreter.Invoke();
    onchip_mark_1();
    for (std::size_t i = 0; i < interpreter.outputs_size(); ++i) {
        TfLiteTensor *output = interpreter.output(i);
        if (status != kTfLiteOk || host_write(out, output->data.raw, output->bytes))
            return 94;
    }
    return 0;
}
