"""The operators that may occur in a program: arithmetic of sizes, and operators of ATen.

All of them compute with tensors: none opens a file, loads a library or calls anything back.
"""

from __future__ import annotations

__all__ = ["ARITHMETIC", "ATEN"]

_ARITHMETIC = """
    _operator.add _operator.sub _operator.mul _operator.floordiv _operator.truediv _operator.mod _operator.neg
    _operator.pos _operator.pow _operator.and_ _operator.or_ _operator.eq _operator.ne _operator.lt
    _operator.le _operator.gt _operator.ge _operator.not_ math.ceil math.floor math.trunc
    torch.sym_int torch.sym_float
    torch.sym_max torch.sym_min torch.sym_not torch.sym_ite
"""
ARITHMETIC = frozenset(_ARITHMETIC.split())
"""Arithmetic of sizes."""

_ATEN = """
    __and __and__ __or __or__ _adaptive_avg_pool2d _adaptive_avg_pool3d _assert_scalar
    _assert_tensor_metadata _cast_Float _cast_Half _efficient_attention_forward _embedding_bag _fft_c2c
    _fft_c2r _fft_r2c _flash_attention_forward _local_scalar_dense _log_softmax
    _native_batch_norm_legit_no_training _native_multi_head_attention _prelu_kernel _safe_softmax
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _softmax _to_copy _unsafe_index _unsafe_view abs acos
    acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add addcdiv addcmul addmm addmv affine_grid_generator alias
    all allclose alpha_dropout amax amin aminmax angle any arange argmax argmin as_strided
    as_strided_copy asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d
    avg_pool3d baddbmm batch_norm bernoulli bilinear bincount bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor block_diag bmm broadcast_to bucketize cartesian_prod cat
    cdist ceil celu chain_matmul channel_shuffle chunk clamp clamp_max clamp_min clip clone col2im
    column_stack complex concat concatenate conj conj_physical constant_pad_nd contiguous conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution copy copysign cos cosh
    cosine_similarity count_nonzero cross cross_entropy_loss cudnn_batch_norm cummax cummin cumprod
    cumsum detach diag diag_embed diagonal diagonal_copy diagonal_scatter diff div dot double dropout
    dsplit dstack einsum elu embedding embedding_bag empty empty_like empty_strided eq equal erf erfc
    erfinv exp exp2 expand expand_as expand_copy expm1 exponential eye feature_dropout fft_fft fft_fft2
    fft_fftn fft_ifft fft_ifft2 fft_irfft fft_irfft2 fft_rfft fft_rfft2 fill flatten flip fliplr flipud
    float float_power floor floor_divide fmax fmin fmod frac fractional_max_pool2d full full_like gather
    ge gelu ger glu grid_sampler grid_sampler_2d group_norm gru gru_cell gt half hardshrink hardsigmoid
    hardswish hardtanh histc hsplit hstack hypot im2col imag index index_add index_copy index_fill
    index_put index_select inner instance_norm inverse isclose isfinite isin isinf isnan istft kron
    layer_norm le leaky_relu lerp lift lift_fresh lift_fresh_copy linalg_cholesky linalg_det linalg_inv
    linalg_matmul linalg_norm linalg_qr linalg_solve linalg_svd linalg_vector_norm linear linspace log
    log10 log1p log2 log_sigmoid log_sigmoid_forward log_softmax logaddexp logaddexp2 logcumsumexp
    logical_and logical_not logical_or logical_xor logit logspace logsumexp lstm lstm_cell lt mT
    masked_fill masked_scatter masked_select matmul matrix_H max max_pool1d max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d maximum mean median meshgrid
    min minimum miopen_batch_norm mish mm mode moveaxis movedim mse_loss mul multinomial mv nan_to_num
    nanmedian narrow native_channel_shuffle native_dropout native_group_norm native_layer_norm ne neg
    new_empty new_full new_ones new_zeros nll_loss nonzero nonzero_static norm normal numpy_T one_hot
    ones ones_like outer pad pairwise_distance permute permute_copy pixel_shuffle pixel_unshuffle polar
    positive pow prelu prod quantile rand rand_like randint randint_like randn randn_like randperm ravel
    real reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 remainder repeat
    repeat_interleave replication_pad1d replication_pad2d reshape reshape_as resolve_conj resolve_neg
    rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round rrelu rsqrt rsub
    scalar_tensor scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted select
    select_copy select_scatter selu sgn sigmoid sign signbit silu sin sinh slice slice_copy
    slice_scatter softmax softplus softshrink sort split split_copy split_with_sizes
    split_with_sizes_copy sqrt square squeeze squeeze_copy stack std std_mean stft sub sum sum_to_size
    svd swapaxes swapdims sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel
    sym_size sym_storage_offset sym_stride t t_copy tan tanh tensor_split threshold tile to topk trace
    transpose transpose_copy tril triu true_divide trunc type_as unbind unbind_copy unflatten unfold
    uniform unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_copy
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d var var_mean view view_as view_as_complex view_as_real
    view_copy vsplit vstack where xlogy zero zeros zeros_like
"""
ATEN = frozenset(_ATEN.split())
"""Names without overload, and without the underscore of in-place operators."""
