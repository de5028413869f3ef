// Package literature provides the schedulers from the papers that Tributary is based on, as published or with the
// minimal changes needed to make them work: Skjolden 2019 (naive, alg1 to alg3), Nikravesh 2018 (mphttp, and its
// baselines fixed and msplayer), Nika 2015 (probe, Partition, Switching), Evensen 2011 (static, dynamic) and DEMS (Guo
// et al. 2017). They are for comparison; docs/SCHEDULERS.md describes them and their results.
//
// Partition and Switching need knowledge that only a simulator has, so they are not in the registry.
package literature
