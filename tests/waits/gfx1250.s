// chip: gfx1250

// kernel: asynchronous_copies
  global_load_async_to_lds_b128 v1, v[2:3], off  // @a
  global_load_async_to_lds_b128 v4, v[2:3], off offset:16 // @b
  cluster_load_async_to_lds_b32 v5, v[2:3], off  // @c
  global_store_async_from_lds_b128 v[2:3], v1, off // @store
  global_load_b32 v6, v[2:3], off                // @load
  s_wait_asynccnt 0x1                            // drains a b, awaits b
  s_wait_loadcnt 0x0                             // drains load
  s_wait_asynccnt 0x0                            // drains c store
  s_endpgm

// kernel: tensor_copies
  tensor_load_to_lds s[0:3], s[4:11]             // @a
  tensor_load_to_lds s[0:3], s[12:19]            // @b
  tensor_store_from_lds s[0:3], s[4:11]          // @c
  s_wait_tensorcnt 0x2                           // drains a
  s_wait_tensorcnt 0x0                           // drains b c, awaits c
  s_endpgm

// kernel: translations
  global_load_b32 v1, v[2:3], off                // @a
  global_store_b32 v[2:3], v9, off               // @b
  s_wait_xcnt 0x1                                // drains a
  v_mov_b32_e32 v2, v9
  s_wait_xcnt 0x0                                // drains b
  s_wait_loadcnt 0x0                             // drains a
  s_wait_xcnt 0x0                                // drains nothing
  s_wait_storecnt 0x0                            // drains b
  s_endpgm

// kernel: returned_is_translated
  global_load_b32 v1, v[2:3], off                // @a
  s_wait_loadcnt 0x0                             // drains a
  s_wait_xcnt 0x0                                // drains nothing
  s_endpgm

// kernel: scalar_and_vector_translations_take_turns
  global_load_b32 v1, v[2:3], off                // @vector
  s_load_b64 s[4:5], s[0:1], 0x0                 // @scalar
  s_wait_xcnt 0x0                                // drains scalar
  s_wait_kmcnt 0x0                               // drains scalar
  s_wait_loadcnt 0x0                             // drains vector
  s_endpgm

// kernel: every_other_counter
  flat_load_b32 v1, v[2:3]                       // @flat
  ds_load_b32 v4, v0                             // @read
  global_store_b32 v[2:3], v9, off               // @store
  s_wait_dscnt 0x1                               // drains flat
  s_wait_loadcnt_dscnt 0x0                       // drains flat read
  s_wait_storecnt 0x0                            // drains store
  s_endpgm

// kernel: async_loop
  global_load_async_to_lds_b128 v1, v[2:3], off  // @first
.Lturn:
  global_load_async_to_lds_b128 v4, v[2:3], off  // @next
  s_wait_asynccnt 0x1                            // drains first next
  ds_load_b128 v[8:11], v0                       // @read
  s_wait_dscnt 0x0                               // drains read
  s_cbranch_scc1 .Lturn
  s_wait_asynccnt 0x0                            // drains next
  s_endpgm

// kernel: barrier_arrival
  global_load_async_to_lds_b32 v1, v[2:3], off   // @a
  ds_atomic_async_barrier_arrive_b64 v5 offset:8 // @arrive
  s_wait_asynccnt 0x1                            // drains a
  s_wait_asynccnt 0x0                            // drains arrive
  s_endpgm
