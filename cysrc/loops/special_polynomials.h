/* Written by tools/vmath_check/fit_special_vector.py: polynomials of special_vector.h on [-1, 1]. The ones with constants C0 and C1 leave these
 * to the caller. `_short`: for float32. */
#ifndef TRT_SPECIAL_POLYNOMIALS_H
#define TRT_SPECIAL_POLYNOMIALS_H

/* Horner's rule; coefficients from the constant one up. */
#define HORNER_2(x, a, b) fma_f64(b, x, a)
#define HORNER_3(x, a, ...) fma_f64(HORNER_2(x, __VA_ARGS__), x, a)
#define HORNER_4(x, a, ...) fma_f64(HORNER_3(x, __VA_ARGS__), x, a)
#define HORNER_5(x, a, ...) fma_f64(HORNER_4(x, __VA_ARGS__), x, a)
#define HORNER_6(x, a, ...) fma_f64(HORNER_5(x, __VA_ARGS__), x, a)
#define HORNER_7(x, a, ...) fma_f64(HORNER_6(x, __VA_ARGS__), x, a)
#define HORNER_8(x, a, ...) fma_f64(HORNER_7(x, __VA_ARGS__), x, a)
#define HORNER_9(x, a, ...) fma_f64(HORNER_8(x, __VA_ARGS__), x, a)
#define HORNER_10(x, a, ...) fma_f64(HORNER_9(x, __VA_ARGS__), x, a)
#define HORNER_11(x, a, ...) fma_f64(HORNER_10(x, __VA_ARGS__), x, a)
#define HORNER_12(x, a, ...) fma_f64(HORNER_11(x, __VA_ARGS__), x, a)
#define HORNER_13(x, a, ...) fma_f64(HORNER_12(x, __VA_ARGS__), x, a)
#define HORNER_14(x, a, ...) fma_f64(HORNER_13(x, __VA_ARGS__), x, a)
#define HORNER_15(x, a, ...) fma_f64(HORNER_14(x, __VA_ARGS__), x, a)
#define HORNER_16(x, a, ...) fma_f64(HORNER_15(x, __VA_ARGS__), x, a)
#define HORNER_17(x, a, ...) fma_f64(HORNER_16(x, __VA_ARGS__), x, a)
#define HORNER_18(x, a, ...) fma_f64(HORNER_17(x, __VA_ARGS__), x, a)

#define NDTRI_CENTRE_C0 0x1.5b3efb1c3325bp+1
#define NDTRI_CENTRE_C1 0x1.f5a8e42ff7d22p-3
INL f64 poly_ndtri_centre(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_10(z, 0x1.88d26f8924e6ep-5, 0x1.9f6d2e57450f6p-9, 0x1.1f2308e6ca9dbp-12, 0x1.beae49f3a697cp-16, 0x1.735ce2299649cp-19, 0x1.4258fef510503p-22,
        0x1.1e98bb76070ddp-25, 0x1.14f0c7b10d837p-28, 0x1.4fae6ebb40826p-32, 0x1.cb01b1bb8609bp-34);
    const f64 odd = HORNER_10(z, 0x1.7f522c4255080p-7, 0x1.deb5b1a594a74p-11, 0x1.625ff9781271bp-14, 0x1.1e230a8b1d1c5p-17, 0x1.e71536ad63f5cp-21,
        0x1.adbaeadd2e629p-24, 0x1.81e07c1904b75p-27, 0x1.7cf9ebdcdd477p-30, 0x1.aeaf67760cedep-34, 0x1.47759ccef1cdap-35);
    return fma_f64(odd, x, even);
}
#define NDTRI_CENTRE_SHORT_C0 0x1.5b3efb1c36ae3p+1
#define NDTRI_CENTRE_SHORT_C1 0x1.f5a8e41f7fa72p-3
INL f64 poly_ndtri_centre_short(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_6(z, 0x1.88d26f335bcefp-5, 0x1.9f6d831987c9cp-9, 0x1.1f1367fef8addp-12, 0x1.c16728b2ec7d1p-16, 0x1.54b6c4acbf7e3p-19, 0x1.e67cf5517379cp-22);
    const f64 odd = HORNER_5(z, 0x1.7f5248c1f71c0p-7, 0x1.dea7aa8122c32p-11, 0x1.63d7e10019a89p-14, 0x1.0b4c75dd033dfp-17, 0x1.6329e739bd04dp-20);
    return fma_f64(odd, x, even);
}
#define NDTRI_TAIL_C0 0x1.d7dbee8443f18p-1
#define NDTRI_TAIL_C1 -0x1.3bc69df897a43p-3
INL f64 poly_ndtri_tail(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_18(z, -0x1.de482e39a774ep-4, -0x1.a0bf44c1c8f73p-6, -0x1.2d17848270d8dp-8, -0x1.9e10b7f2d2ad7p-11, -0x1.17489657f90ddp-13,
        -0x1.784851f591487p-16, -0x1.0069c1044733cp-18, -0x1.e0f3386f6b499p-21, 0x1.21903ea45dcbep-21, -0x1.0997a356fb8f2p-19,
        0x1.13f424aa79bf9p-18, -0x1.c12d82d724057p-18, 0x1.12bb6b954e07ap-17, -0x1.f4f1e22ef465cp-18, 0x1.497e20b0e4debp-18, -0x1.28a4170ec643bp-19,
        0x1.47e9411530618p-21, -0x1.532a051ec79ebp-24);
    const f64 odd = HORNER_17(z, -0x1.c9a22207ab4eap-5, -0x1.614c4787a6834p-7, -0x1.ed2b8187736a7p-10, -0x1.4b72dc77d3d8ep-12, -0x1.b1c0758400ffap-15,
        -0x1.139354e9648edp-17, -0x1.22982a76b569fp-20, -0x1.5cc3cb868607ap-21, 0x1.9b1637812faf1p-20, -0x1.cf28ace07502ep-19,
        0x1.8e08c931c5f71p-18, -0x1.fedb3db48c67ep-18, 0x1.e6bd6bcf68be1p-18, -0x1.4d2d6d76798d2p-18, 0x1.37476ff8dd3b1p-19, -0x1.6429404db2b9ap-21,
        0x1.7d08b3da2410dp-24);
    return fma_f64(odd, x, even);
}
#define NDTRI_TAIL_SHORT_C0 0x1.d7dbee842fa2ep-1
#define NDTRI_TAIL_SHORT_C1 -0x1.3bc69dff0148fp-3
INL f64 poly_ndtri_tail_short(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_8(z, -0x1.de482dd5d61b6p-4, -0x1.a0bf6ce2c9028p-6, -0x1.2d115c3469071p-8, -0x1.9f000601719d4p-11, -0x1.0d4636c121733p-13,
        -0x1.f2279c5332299p-16, 0x1.285a1f14c644bp-19, -0x1.990ca8d014576p-19);
    const f64 odd = HORNER_7(z, -0x1.c9a21d7df0b0bp-5, -0x1.614d33a7691a4p-7, -0x1.ed01633e1e623p-10, -0x1.4d5e552f593bcp-12, -0x1.99fc05f6fb872p-15,
        -0x1.5b631e09b30bfp-17, -0x1.71734c85606b8p-21);
    return fma_f64(odd, x, even);
}
#define I1_SMALL_C0 0x1p-1
#define I1_SMALL_C1 0x1.5555555555555p-4
INL f64 poly_i1_small(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_7(z, 0x1.c71c71c71c738p-8, 0x1.845c8a0cec0eep-17, 0x1.522a4404315d3p-28, 0x1.ab820233768bep-41, 0x1.e278a2d5b7b5ap-55, 0x1.1b1c5ff40844dp-69,
        0x1.11571c6df1a22p-84);
    const f64 odd = HORNER_6(z, 0x1.6c16c16c168aep-12, 0x1.27e4fb7700164p-22, 0x1.2c9757e697259p-34, 0x1.f174f0d9e1de8p-48, 0x1.8b0db522da522p-62,
        0x1.2c5319c0c8513p-77);
    return fma_f64(odd, x, even);
}
#define I1_SMALL_SHORT_C0 0x1.0000000004eefp-1
#define I1_SMALL_SHORT_C1 0x1.55555552dba2cp-4
INL f64 poly_i1_small_short(f64 x)
{
    return HORNER_9(x, 0x1.c71c72302506dp-8, 0x1.6c16baa3af752p-12, 0x1.845cfce73fd7fp-17, 0x1.27e08f2f52540p-22, 0x1.526079046475cp-28, 0x1.2aeeaccee2f0ep-34,
        0x1.bc11dbca1d9d9p-41, 0x1.8c6fffe1795dfp-48, 0x1.983e2d61b8ebdp-54);
}
INL f64 poly_ndtri_slope(f64 x)
{
    return HORNER_6(x, -0x1.3d0a529dec7b2p-3, -0x1.e07bde9fffd0bp-3, -0x1.416cc6c84d750p-3, -0x1.7f22e79e34eecp-4, -0x1.477c0f5d4e697p-4,
        -0x1.5c3d018fceaf4p-5);
}
#define I1_LARGE_C0 0x1.8e6bf6fae06bdp-2
#define I1_LARGE_C1 -0x1.4a4281867f55ep-7
INL f64 poly_i1_large(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_13(z, -0x1.ed3096ec56c62p-13, -0x1.206f67b54dc07p-19, -0x1.1ef99581b5b3cp-23, -0x1.198c338314445p-25, 0x1.1c2a00697fc07p-26,
        0x1.a702d05246119p-29, -0x1.2a346053d280bp-27, 0x1.20f47b3cb800dp-27, -0x1.a677ac720fee1p-28, 0x1.dfa40f41a1d65p-29, -0x1.89bac80361b48p-30,
        0x1.993e23ff4e730p-32, -0x1.8fa8afd5a5374p-35);
    const f64 odd = HORNER_12(z, -0x1.19f47a6f31166p-16, -0x1.d008d93aceb5dp-22, -0x1.09351c578638fp-24, -0x1.f0168ce8f9b14p-28, 0x1.7e38bd4012272p-26,
        -0x1.1afb0ad92dc51p-26, 0x1.7645d0c7b3097p-27, -0x1.e85d30cf46fa1p-28, 0x1.1a65417f820f5p-28, -0x1.f0a35a94b2877p-30, 0x1.1799bfaa82ae5p-31,
        -0x1.26d2ec8972b33p-34);
    return fma_f64(odd, x, even);
}
#define I1_LARGE_SHORT_C0 0x1.8e6bf6fb3d31bp-2
#define I1_LARGE_SHORT_C1 -0x1.4a4281789eafap-7
INL f64 poly_i1_large_short(f64 x)
{
    return HORNER_8(x, -0x1.ed312c6ac6c62p-13, -0x1.19f6fdda1a81bp-16, -0x1.1f36e7cc00809p-19, -0x1.cbb308a0fa4a0p-22, -0x1.597bc34a95704p-23,
        -0x1.3f930a644261fp-24, 0x1.13f48a6556d23p-29, 0x1.ea3ae4f756649p-27);
}
#define I0_SCALED_C0 0x1.9bf09d24c9fb6p-2
#define I0_SCALED_C1 0x1.c7e07b9f9975ep-9
INL f64 poly_i0_scaled(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_12(z, 0x1.32d2e3d916b4fp-13, 0x1.d34ef43a3748ep-20, 0x1.fe86cc7301c4bp-24, 0x1.029d53e48c6b8p-25, -0x1.1717c69c74983p-26,
        -0x1.2acd95bd470c9p-29, 0x1.fd1ec17289bb3p-28, -0x1.d27cd98a59906p-28, 0x1.2916b98e3afabp-28, -0x1.0b0960b547b6ep-29, 0x1.2d674a5ebd717p-31,
        -0x1.3dc7a2ae3d067p-34);
    const f64 odd = HORNER_12(z, 0x1.a271ce47ad312p-17, 0x1.8cf616da2b0fap-22, 0x1.e435fc96963e9p-25, 0x1.a382ca30c741fp-28, -0x1.69efb3e0e6c11p-26,
        0x1.13358e6c2b154p-26, -0x1.720bfc164398fp-27, 0x1.e69afc6682fd6p-28, -0x1.19f9ba1073dedp-28, 0x1.efd075cee27e6p-30, -0x1.16ea8e6826147p-31,
        0x1.25db50419ae9bp-34);
    return fma_f64(odd, x, even);
}
#define I0_SCALED_SHORT_C0 0x1.9bf09d24739a2p-2
#define I0_SCALED_SHORT_C1 0x1.c7e07b706f0d8p-9
INL f64 poly_i0_scaled_short(f64 x)
{
    return HORNER_8(x, 0x1.32d36f4bfe85fp-13, 0x1.a27623aa42ea4p-17, 0x1.d1064e6f961d6p-20, 0x1.892856d3de874p-22, 0x1.3641ef68c8b10p-23,
        0x1.22d6fc70f7389p-24, -0x1.90aa68a3e37dep-29, -0x1.d550f994d8e10p-27);
}
INL f64 poly_k0_near(f64 x)
{
    return HORNER_7(x, 0x1.0c349d18aa8a2p+0, 0x1.8d36408f20297p-5, 0x1.ac6b38a90b0e0p-11, 0x1.e49026d207f13p-18, 0x1.52c78d374c411p-25, 0x1.4256ebd911f48p-33,
        0x1.bcbbaf464251cp-42);
}
INL f64 poly_k0_near_short(f64 x)
{
    return HORNER_5(x, 0x1.0c349d18aa8d9p+0, 0x1.8d364088d476dp-5, 0x1.ac6b38a716baep-11, 0x1.e4934cab558fep-18, 0x1.52c8dac40fb5cp-25);
}
INL f64 poly_k1_near(f64 x)
{
    return HORNER_8(x, -0x1.144f4c5602eb9p-4, 0x1.702c0c2f4f17bp-4, 0x1.82d04d2ed20bcp-9, 0x1.4386563e9cb88p-15, 0x1.2b3cd7583206ap-22, 0x1.62466b8478dfep-30,
        0x1.247b9d2a723f7p-38, 0x1.64922cab292b4p-47);
}
INL f64 poly_k1_near_short(f64 x)
{
    return HORNER_5(x, -0x1.144f4c5600a2ap-4, 0x1.702c0c13a183cp-4, 0x1.82d04d29addf8p-9, 0x1.4389cbf07d838p-15, 0x1.2b3e8e119dc64p-22);
}
INL f64 poly_ik0(f64 x)
{
    return HORNER_7(x, 0x1.081caaf3bce90p+0, 0x1.0731ebadb2cd8p-5, 0x1.d1e2938f87261p-12, 0x1.d04af1ac7e89ep-19, 0x1.285de52ac34e9p-26, 0x1.06e6674ece195p-34,
        0x1.56d1b4602b548p-43);
}
INL f64 poly_ik0_short(f64 x)
{
    return HORNER_5(x, 0x1.081caaf3bcea5p+0, 0x1.0731ebab218d8p-5, 0x1.d1e2938e057a3p-12, 0x1.d04d82ec80cefp-19, 0x1.285ee6480a96bp-26);
}
INL f64 poly_ik1(f64 x)
{
    return HORNER_7(x, 0x1.0563a512a7f68p-1, 0x1.5c82f08a793f0p-7, 0x1.cfb745d7de0e8p-14, 0x1.7233cfc5cd32bp-21, 0x1.8a2df5809534ap-29, 0x1.2be22f3460d49p-37,
        0x1.564c9f0aa3d12p-46);
}
INL f64 poly_ik1_short(f64 x)
{
    return HORNER_5(x, 0x1.0563a512a7f6dp-1, 0x1.5c82f08902644p-7, 0x1.cfb745d71d836p-14, 0x1.723546a088343p-21, 0x1.8a2ef63a0c7cap-29);
}
#define K0_FAR_C0 0x1.30ae2423de262p+0
#define K0_FAR_C1 -0x1.ac450893fa550p-5
INL f64 poly_k0_far(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_16(z, 0x1.085a24b1d9766p-7, 0x1.2a7215a2aa796p-11, 0x1.3f1d21493dac0p-14, 0x1.dbdb914b1332bp-17, 0x1.b6403185f5408p-19,
        0x1.d7cebbfd6634dp-21, 0x1.f0787f17aaf97p-23, 0x1.ad379910d6719p-23, -0x1.35a7caab5e8b3p-22, 0x1.63e0791de2e53p-21, -0x1.06740bdd2d91bp-20,
        0x1.21c8f14d2c85dp-20, -0x1.c22afc64b9cd4p-21, 0x1.d9b98ed768c32p-22, -0x1.2e18fd139216dp-23, 0x1.6886b2ee116e6p-26);
    const f64 odd = HORNER_16(z, -0x1.f446a7e260486p-10, -0x1.9db9cc478c659p-13, -0x1.0ae1b2ca7d306p-15, -0x1.bee97c7b41687p-18, -0x1.bdc7bf0b02e75p-20,
        -0x1.0227819f664cdp-21, -0x1.be4be119884dep-24, -0x1.b620e9c5fa302p-23, 0x1.9741491b46502p-22, -0x1.9d7852e8fb6cdp-21,
        0x1.23059b19b08dfp-20, -0x1.30b76131dd3d1p-20, 0x1.c499d8a257040p-21, -0x1.c863499b75026p-22, 0x1.17e4099c43d1fp-23, -0x1.40f01afaf31c5p-26);
    return fma_f64(odd, x, even);
}
#define K0_FAR_SHORT_C0 0x1.30ae2423ca863p+0
#define K0_FAR_SHORT_C1 -0x1.ac4508fc41eb4p-5
INL f64 poly_k0_far_short(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_7(z, 0x1.085a297474719p-7, 0x1.2a6c119bfb4cap-11, 0x1.408bbed3e30f2p-14, 0x1.b1bae61f5ec2cp-17, 0x1.7e8bf6be7b36bp-18,
        -0x1.ac7a6ad4a9f90p-20, 0x1.7448b5debfa40p-20);
    const f64 odd = HORNER_6(z, -0x1.f444d1f321f10p-10, -0x1.9e51623f70a71p-13, -0x1.004600d95e0d2p-15, -0x1.3e6339e1d9fe9p-17, 0x1.a082698d69177p-20,
        -0x1.18e6fdce1a4afp-19);
    return fma_f64(odd, x, even);
}
#define K1_FAR_C0 0x1.7628990a85c65p+0
#define K1_FAR_C1 0x1.80fb15bf9d161p-3
INL f64 poly_k1_far(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_16(z, -0x1.03bbb0fa2f66bp-6, -0x1.bab479ad4ce9dp-11, -0x1.acf5ab9d92b33p-14, -0x1.2f8c3b21ca128p-16, -0x1.0e779dd40dfbep-18,
        -0x1.1c51672a49426p-20, -0x1.298d3af06c025p-22, -0x1.e0b17ccb760fdp-23, 0x1.4d0578dda963fp-22, -0x1.81e3cb7068578p-21,
        0x1.1c4a2b6cae93ep-20, -0x1.3a0c83f166221p-20, 0x1.e7ec7b4762270p-21, -0x1.00d1c0c3de268p-21, 0x1.47aa3afabb3d9p-23, -0x1.8752cbc45490dp-26);
    const f64 odd = HORNER_16(z, 0x1.97e59d89187d8p-9, 0x1.21729cbf09ec9p-12, 0x1.5c523900ff87dp-15, 0x1.17f2c32fdd61cp-17, 0x1.0fb6d15352c27p-19,
        0x1.33ece42fdc292p-21, 0x1.0fab5b69255e2p-23, 0x1.e286e9f7c4fd1p-23, -0x1.b70af6a96c0a7p-22, 0x1.bf6a3d2449dd8p-21, -0x1.3ac3c6537277dp-20,
        0x1.49b11c037ba84p-20, -0x1.e9c64db7c84ebp-21, 0x1.ee078487222eap-22, -0x1.2f13c697a65e4p-23, 0x1.5bc03e336910ep-26);
    return fma_f64(odd, x, even);
}
#define K1_FAR_SHORT_C0 0x1.7628990a9c39cp+0
#define K1_FAR_SHORT_C1 0x1.80fb15dda1f17p-3
INL f64 poly_k1_far_short(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_7(z, -0x1.03bbb3b370062p-6, -0x1.baad96b814b70p-11, -0x1.ae998c83e5d35p-14, -0x1.1768bdf5c741bp-16, -0x1.c9e6e7ca7b6f2p-18,
        0x1.de9fe811ef6d0p-20, -0x1.af11f4ace0a07p-20);
    const f64 odd = HORNER_6(z, 0x1.97e48edfab067p-9, 0x1.21c9f600e7fcfp-12, 0x1.50167c6b53d1ap-15, 0x1.8585ae4c30108p-17, -0x1.c54c2397c2cedp-20,
        0x1.47de3f001a6f5p-19);
    return fma_f64(odd, x, even);
}
#define J0_NEAR_C0 -0x1.6b2948e843e2bp-4
#define J0_NEAR_C1 0x1.08d902d0bf620p-4
INL f64 poly_j0_near(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_5(z, -0x1.17057235d9c2bp-6, -0x1.a4b2380ccc120p-13, -0x1.08c621262a185p-21, -0x1.b72e5fe143051p-32, -0x1.3344f41d42566p-43);
    const f64 odd = HORNER_5(z, 0x1.33fa04134f0abp-9, 0x1.87a4ac4403e49p-17, 0x1.0fff1f805757cp-26, 0x1.1e14036597f5bp-37, 0x1.148676940a444p-49);
    return fma_f64(odd, x, even);
}
#define J0_NEAR_SHORT_C0 -0x1.6b2948e843e3ep-4
#define J0_NEAR_SHORT_C1 0x1.08d902d0ba59ep-4
INL f64 poly_j0_near_short(f64 x)
{
    return HORNER_7(x, -0x1.17057235d8d2ap-6, 0x1.33fa041bb1c9dp-9, -0x1.a4b238108c498p-13, 0x1.87a48e1430faap-17, -0x1.08c616a58ec05p-21,
        0x1.104f9c8e6859cp-26, -0x1.b78e656d8c29dp-32);
}
#define J1_NEAR_C0 -0x1.5aeded077f525p-6
#define J1_NEAR_C1 0x1.5910c675e079ap-7
INL f64 poly_j1_near(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_5(z, -0x1.13333a854ed90p-9, -0x1.16aa83736c7b3p-16, -0x1.07cd7fb37ee9bp-25, -0x1.5e83fd62e6d08p-36, -0x1.98fda524d7d7fp-48);
    const f64 odd = HORNER_5(z, 0x1.e84c1e7be0354p-13, 0x1.bd76179b299b6p-21, 0x1.e2249b115d29cp-31, 0x1.9f4d1fcadd587p-42, 0x1.53d84f40db3c9p-54);
    return fma_f64(odd, x, even);
}
#define J1_NEAR_SHORT_C0 -0x1.5aeded07745c6p-6
#define J1_NEAR_SHORT_C1 0x1.5910c675dea63p-7
INL f64 poly_j1_near_short(f64 x)
{
    return HORNER_6(x, -0x1.13333a9044a85p-9, 0x1.e84c1e81f64d0p-13, -0x1.16aa680d5e1d0p-16, 0x1.bd7601b250527p-21, -0x1.082529af6a646p-25,
        0x1.e29971e2bd58ep-31);
}
#define Y0_NEAR_C0 0x1.1de47f3d61dbbp-1
#define Y0_NEAR_C1 0x1.a1331a69b9ad2p-5
INL f64 poly_y0_near(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_6(z, -0x1.9d62c655f0441p-2, -0x1.9408055c44088p-6, -0x1.36d3e4868d88dp-13, -0x1.e2e0081ac1c8bp-23, -0x1.1273bb3bad8b7p-33,
        -0x1.195f082be4c53p-45);
    const f64 odd = HORNER_5(z, 0x1.3403132dcde11p-3, 0x1.343e1fcd27e77p-9, 0x1.bf172601b35aap-18, 0x1.9681749c063b5p-28, 0x1.3026a7e86c819p-39);
    return fma_f64(odd, x, even);
}
#define Y0_NEAR_SHORT_C0 0x1.1de47f3d61525p-1
#define Y0_NEAR_SHORT_C1 0x1.a1331a69ba7e4p-5
INL f64 poly_y0_near_short(f64 x)
{
    return HORNER_8(x, -0x1.9d62c655baa06p-2, 0x1.3403132dc9cb9p-3, -0x1.940805771595ep-6, 0x1.343e1fd2dfa18p-9, -0x1.36d3befb70d65p-13, 0x1.bf170bde60ecap-18,
        -0x1.e38ba292671c0p-23, 0x1.96ea01e5be20ap-28);
}
#define Y1_NEAR_C0 0x1.51dd34f6a80c0p-4
#define Y1_NEAR_C1 0x1.369daf19b82a4p-3
INL f64 poly_y1_near(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_6(z, -0x1.9cc7b4993ede7p-4, -0x1.6fd45fc6380fap-9, -0x1.7c6b1708d3b12p-17, -0x1.c0737666ad22fp-27, -0x1.9bcb473a6c65dp-38,
        -0x1.628185e9567b3p-50);
    const f64 odd = HORNER_5(z, 0x1.79eb3dc1c8d59p-6, 0x1.c22abaa98d7b6p-13, 0x1.d7d9ec15026a1p-22, 0x1.514dc247b8b97p-32, 0x1.a085fb49f46a9p-44);
    return fma_f64(odd, x, even);
}
#define Y1_NEAR_SHORT_C0 0x1.51dd34f6a7d88p-4
#define Y1_NEAR_SHORT_C1 0x1.369daf19593a8p-3
INL f64 poly_y1_near_short(f64 x)
{
    return HORNER_7(x, -0x1.9cc7b49934cf4p-4, 0x1.79eb3de956f01p-6, -0x1.6fd45fd0471cdp-9, 0x1.c22a7377f6e72p-13, -0x1.7c6afadf194b0p-17,
        0x1.d897be317d013p-22, -0x1.c0f431599bf5ap-27);
}
#define P0_C0 0x1.204210f5bc804p-1
#define P0_C1 -0x1.2a30efaaab96dp-10
INL f64 poly_p0(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_11(z, 0x1.6921bfcc0a080p-15, 0x1.5d90579d527f0p-21, 0x1.3ff3411725aa9p-25, 0x1.16d4a45d60e08p-28, 0x1.6a7540d18809bp-31,
        0x1.c114abac38145p-34, 0x1.cb6197281f7c7p-34, -0x1.916efedbad3dbp-34, 0x1.9c540dd69814bp-34, -0x1.97c35355c330fp-35, 0x1.a06d52381eed6p-37);
    const f64 odd = HORNER_11(z, -0x1.154c261195eddp-18, -0x1.2c958243252e6p-23, -0x1.8e0e667466bc1p-27, -0x1.ace3be9888e20p-30, -0x1.4a86bc1e0679fp-32,
        -0x1.dcc05c7e231ebp-36, -0x1.a186b52f54968p-34, 0x1.a718b7fc02e3fp-34, -0x1.7ebf549939d1ep-34, 0x1.6a847e2c1008cp-35,
        -0x1.563fa69e6b756p-37);
    return fma_f64(odd, x, even);
}
#define P0_SHORT_C0 0x1.204210f5c2184p-1
#define P0_SHORT_C1 -0x1.2a30ee0b9d62ap-10
INL f64 poly_p0_short(f64 x)
{
    return HORNER_7(x, 0x1.69217bdd3d131p-15, -0x1.156108073b821p-18, 0x1.5e129b70dceeap-21, -0x1.23b2d06992b22p-23, 0x1.2aa6cb9f0509bp-25,
        -0x1.1c030fe73d7e3p-26, 0x1.c1807be681a76p-28);
}
INL f64 poly_q0(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_13(z, -0x1.1bffffe2e4f26p-4, -0x1.3a17029037077p-14, -0x1.012aa1a8771aap-19, -0x1.32e3af1679f52p-23, -0x1.3d2b23c35144cp-26,
        -0x1.c572187caa8e5p-29, -0x1.fa6d041760f66p-31, 0x1.0238e5447d3cep-32, -0x1.db84ab30bd2f4p-31, 0x1.06cac02877b90p-30,
        -0x1.a90746a622355p-31, 0x1.7fff84be01ba5p-32, -0x1.4ca88af54146fp-34);
    const f64 odd = HORNER_12(z, 0x1.207529284f75cp-10, 0x1.4b783fd39512bp-17, 0x1.00e80cd22710cp-21, 0x1.a2ed4573b87afp-25, 0x1.03d304b88753cp-27,
        0x1.cc43615de3882p-30, 0x1.c5c6d7222132fp-36, 0x1.c88fd20867f3fp-31, -0x1.f24c6a08e4d75p-31, 0x1.b7e1cd137bca0p-31, -0x1.a191364611d51p-32,
        0x1.836c93bc1f9f0p-34);
    return fma_f64(odd, x, even);
}
INL f64 poly_q0_short(f64 x)
{
    return HORNER_9(x, -0x1.1bffffe3dd786p-4, 0x1.207520bb75900p-10, -0x1.3a164683635d4p-14, 0x1.4bae47f4125aep-17, -0x1.01de20112d179p-19,
        0x1.eaf9bff124c2ep-22, -0x1.15c0660417919p-23, 0x1.3d44697ed5448p-24, -0x1.119e7290b68f7p-25);
}
#define P1_C0 0x1.21e30d4c47953p-1
#define P1_C1 0x1.faaf1af0360e4p-10
INL f64 poly_p1(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_11(z, -0x1.dd8449b92b4c6p-15, -0x1.9b2ddc75b9e41p-21, -0x1.6a51f6fc355aap-25, -0x1.35bbbe7128a82p-28, -0x1.8d9daa0b12195p-31,
        -0x1.eda7f686d35fep-34, -0x1.e8a1757e6656fp-34, 0x1.a6b264e8414acp-34, -0x1.b36e03bac5ed9p-34, 0x1.ae649761aa1b1p-35,
        -0x1.b81005bc59d9ep-37);
    const f64 odd = HORNER_11(z, 0x1.52eaff543a24cp-18, 0x1.599aba44cfe08p-23, 0x1.bddbbb66f88c6p-27, 0x1.d953625d35b16p-30, 0x1.689f7683fd4cap-32,
        0x1.0d4d6a19be731p-35, 0x1.b9f97a993b557p-34, -0x1.bd763f36406e6p-34, 0x1.93a2615f251d9p-34, -0x1.7e3779658ba48p-35, 0x1.6932ef5e72f71p-37);
    return fma_f64(odd, x, even);
}
#define P1_SHORT_C0 0x1.21e30d4c417b1p-1
#define P1_SHORT_C1 0x1.faaf1928c4535p-10
INL f64 poly_p1_short(f64 x)
{
    return HORNER_7(x, -0x1.dd83ff98ec2aap-15, 0x1.5301eb820e0eep-18, -0x1.9bbc0d148a175p-21, 0x1.4fd87546f53c9p-23, -0x1.530f13c015594p-25,
        0x1.3c5dbcb94532dp-26, -0x1.f0545bbf67a16p-28);
}
INL f64 poly_q1(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_13(z, 0x1.addb5e3b5bd90p-3, 0x1.8a785eb4812a0p-14, 0x1.29caa6168e406p-19, 0x1.58a8b2505cb58p-23, 0x1.5e6086b40952dp-26,
        0x1.efe8f3f6460f6p-29, 0x1.113d91906b16ep-30, -0x1.09317438aacb6p-32, 0x1.f4b422688d0c5p-31, -0x1.143480bed2cf7p-30, 0x1.bf0ce89bd0b23p-31,
        -0x1.93e66ad461480p-32, 0x1.5e26852fcf303p-34);
    const f64 odd = HORNER_12(z, -0x1.9be0f608dd221p-10, -0x1.8af70fed3ce35p-17, -0x1.242a4139d9513p-21, -0x1.d2230b41c14cdp-25, -0x1.1d6bf56c2b42dp-27,
        -0x1.f3eafd2f5116ep-30, -0x1.535b7d58f3431p-35, -0x1.e1f46c0da9ff2p-31, 0x1.060be997811bap-30, -0x1.cf330e7452d34p-31,
        0x1.b7a785015533ap-32, -0x1.9844562587c3ap-34);
    return fma_f64(odd, x, even);
}
INL f64 poly_q1_short(f64 x)
{
    return HORNER_9(x, 0x1.addb5e3be2d90p-3, -0x1.9be0ecd554eddp-10, 0x1.8a77925afabcbp-14, -0x1.8b32175fb0910p-17, 0x1.2a8dc4846cddcp-19,
        -0x1.17aef8e47ea34p-21, 0x1.38f79dd4f4823p-23, -0x1.5f08919a7ed13p-24, 0x1.2c711794598b3p-25);
}
#define TRIGAMMA_NEAR_C0 0x1.a51a6625307d3p+0
#define TRIGAMMA_NEAR_C1 0x1.c5819758c06c8p-1
INL f64 poly_trigamma_near(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_16(z, 0x1.56bcceea78251p-4, 0x1.3973438cfcdc3p-5, 0x1.edaa5c9e23fddp-7, 0x1.5f2ac587b790cp-8, 0x1.d12300c600802p-10, 0x1.249591b83402ap-11,
        0x1.625d72f56b65ap-13, 0x1.a1b55a6e50db4p-15, 0x1.db208b8c991dcp-17, 0x1.276ef6dd7e1bdp-18, 0x1.3bbd231aad0acp-21, 0x1.f95fb19ee37e2p-21,
        -0x1.d38ca8a99695bp-22, 0x1.585d74f9ec621p-22, -0x1.b08841532f8f0p-24, 0x1.6c0bc9ba5d094p-26);
    const f64 odd = HORNER_15(z, -0x1.da3288b5dc170p-5, -0x1.8f60a0842719dp-6, -0x1.29870d4bfadb9p-7, -0x1.9732c02f2cf11p-9, -0x1.0649699b768ccp-10,
        -0x1.434e3da297381p-12, -0x1.82006b58c7b92p-14, -0x1.bd61db6d7101bp-16, -0x1.100a9fc7da735p-17, -0x1.6d8608a5ac19ap-20,
        -0x1.9ffd876eb6a26p-20, 0x1.64ab0798dbcffp-21, -0x1.20b7123b63d30p-21, 0x1.721f80ce028c4p-23, -0x1.4838447ab3460p-25);
    return fma_f64(odd, x, even);
}
#define TRIGAMMA_NEAR_SHORT_C0 0x1.a51a662504c77p+0
#define TRIGAMMA_NEAR_SHORT_C1 0x1.c581975ac4a85p-1
INL f64 poly_trigamma_near_short(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_9(z, 0x1.56bcd10466dc6p-4, 0x1.3972bb72ce7ffp-5, 0x1.edc4f55f391bfp-7, 0x1.5ddb0290a0752p-8, 0x1.e3fc21709120fp-10, 0x1.a69c53f159eb7p-12,
        0x1.84d98b183ad2cp-12, -0x1.a9b0c69cc5303p-14, 0x1.23aa32a9bfb67p-14);
    const f64 odd = HORNER_9(z, -0x1.da3291ce370b8p-5, -0x1.8f5f1f2792365p-6, -0x1.29a42ac68fb22p-7, -0x1.94cb94aa31596p-9, -0x1.1567a0188be1bp-10,
        -0x1.9ba463142c018p-13, -0x1.d9fa28105a5f7p-13, 0x1.17e4e0f6369b7p-14, -0x1.4c77929723c5fp-15);
    return fma_f64(odd, x, even);
}
INL f64 poly_trigamma_far(f64 x)
{
    const f64 z = x * x;
    const f64 even = HORNER_11(z, 0x1.4d74bf402f153p-3, 0x1.004fd64ed7d8cp-12, 0x1.33477f8ce259bp-18, 0x1.e8a6cc14829d8p-23, 0x1.53206bf8f7faep-26,
        0x1.51053247f0860p-29, 0x1.d5bd3b223d43dp-32, 0x1.d39c2511430fcp-36, 0x1.3f5091269c1b3p-34, -0x1.04d2b8ce7ecb4p-35, 0x1.9127b4d23517dp-37);
    const f64 odd = HORNER_11(z, -0x1.d3a100e75f488p-9, -0x1.db5d2f689c616p-16, -0x1.f60f8858fb19cp-21, -0x1.108635221fbe2p-24, -0x1.cdb09cb442320p-28,
        -0x1.0586b936fc9e8p-30, -0x1.b7ec0be91d3b9p-33, 0x1.053faa2329578p-37, -0x1.ccdac585c7a3cp-35, 0x1.92c35b2086b65p-36,
        -0x1.0e10c4967d92bp-37);
    return fma_f64(odd, x, even);
}
INL f64 poly_trigamma_far_short(f64 x)
{
    return HORNER_9(x, 0x1.4d74bf4075fa0p-3, -0x1.d3a0fddf4df3dp-9, 0x1.004fbb32686dfp-12, -0x1.db70e2a94a108p-16, 0x1.337c0df6dd8dfp-18,
        -0x1.ed8eb61b3ebf8p-21, 0x1.d72b2593a3a96p-23, -0x1.641bb7e7682f0p-24, 0x1.e3c716003621cp-26);
}
#define J0_SQUARE_HI 0x1.721fb80462bbbp+2
#define J0_SQUARE_LO 0x1.db60c816c15d3p-52
#define J1_SQUARE_HI 0x1.d5d2b4189822cp+3
#define J1_SQUARE_LO -0x1.c6a0d245172bap-54
#define NDTRI_SCALE 0x1.6b98c35037cdcp+3
#define NDTRI_SHIFT 0x1.45c1388059494p+0

#endif
