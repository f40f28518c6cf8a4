"""Canvas views: one small Python class and one plain ESM file each."""
