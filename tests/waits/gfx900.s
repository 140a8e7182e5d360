// chip: gfx900

// kernel: exports_by_type
  exp mrt0 v0, v1, v2, v3                        // @color
  exp pos0 v0, v1, v2, v3                        // @pos
  exp mrt1 v4, v5, v6, v7 done                   // @color2
  s_waitcnt expcnt(1)                            // drains color
  s_waitcnt expcnt(0)                            // drains color2 pos, awaits color2 pos
  s_endpgm

// kernel: gds_holds_its_sources
  ds_add_u32 v1, v2 gds                          // @gds
  ds_read_b32 v3, v4                             // @lds
  s_waitcnt expcnt(0)                            // drains gds
  s_waitcnt lgkmcnt(0)                           // drains gds lds
  s_endpgm

// kernel: images
  image_load v[0:3], v4, s[0:7] dmask:0xf unorm  // @image
  image_store v[4:7], v4, s[0:7] dmask:0xf unorm // @store
  s_waitcnt vmcnt(1)                             // drains image
  s_waitcnt vmcnt(0)                             // drains store
  s_endpgm
