// Package docs follows the documentation: every block of commands in README.md and docs/ is run,
// page after page, from an empty hub and two empty workers, with helm, kubectl and the plugin on
// the PATH, as a new user would.
//
//	pages ──Parse──> blocks ──┐
//	                          ├──> bash, a process for each page ──> what is printed, held against the page
//	stage: hub, west, east ───┘
//
// In a page,
//
//	```sh      commands: they're run, and must succeed
//	```text    right below them: what they print. "..." stands for anything, also for whole lines. If it begins as
//	           a refusal does ("error", "The ... is invalid"), the commands must fail
//	```yaml    with an apiVersion: the hub's API server must accept it (a dry run)
//	<!-- by: e2e/dispatch -->   right above a block: it isn't run here, the tests in that folder show what it says
//
// The tests of links and of statements need no clusters: links lead somewhere, and what pages would
// easily contradict each other about is said alike. Another
// counts the words: the docs are to stay short.
//
// # The stage hand
//
// On the hub, Pods are simulated: when Helm installs a Deployment of ours, a stage hand starts the
// real program beside it, with the arguments and the ServiceAccount's token that its Pods have, and
// leads the hub's API server to it. Real Pods are the matter of e2e/real.
package docs
