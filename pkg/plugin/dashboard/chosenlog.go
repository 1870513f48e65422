package dashboard

import (
	"net/url"
	"strconv"

	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// logOf is the log that a Job's page shows.
type logOf struct {
	Pod, Worker, Index, Container string
	// Containers of the Pod.
	Containers []view.Container
	// Source is the address of the log, and Download that of all of it, as a file.
	Source, Download string
	// Missing says why there is no log; empty: there is one.
	Missing string
	// Previous, Timestamps and NoWrap are chosen. HasPrevious: there is a previous run.
	Previous, HasPrevious, Timestamps, NoWrap bool
}

// The parameters of a page that choose a log, and of the log itself.
const (
	paramPod        = "pod"
	paramOn         = "on"
	paramIndex      = "index"
	paramContainer  = "container"
	paramPrevious   = "previous"
	paramTimestamps = "timestamps"
	paramWrap       = "wrap"
	paramWorker     = "worker"
	paramDownload   = "download"
)

// chosenLog is the log that the address names by a Pod or an index; nil: it names none that is
// there.
func chosenLog(address *url.URL, in *view.JobInput) *logOf {
	query := address.Query()
	index := query.Get(paramIndex)
	pod := view.PodNamed(in.Pods, query.Get(paramPod), query.Get(paramOn))
	if index != "" {
		pod = view.PodOfIndex(in.Pods, index)
	}
	switch {
	case pod == nil && index == "":
		return nil
	case pod == nil && in.Reading:
		return &logOf{Index: index, Missing: "Reading the Pods …"}
	case pod == nil:
		return &logOf{Index: index, Missing: "There is no Pod of this index now."}
	}
	log := &logOf{
		Pod: pod.Name, Worker: pod.Worker, Index: index, Container: query.Get(paramContainer), Containers: pod.Containers,
		Previous: query.Has(paramPrevious), Timestamps: query.Has(paramTimestamps), NoWrap: query.Has(paramWrap),
	}
	if !pod.HasLog {
		log.Missing = "It hasn't started: " + pod.State.Text + "."
		return log
	}
	if log.Container == "" && len(pod.Containers) > 0 {
		log.Container = pod.Containers[0].Name
	}
	for _, c := range pod.Containers {
		log.HasPrevious = log.HasPrevious || c.Name == log.Container && c.Restarted
	}
	log.Previous = log.Previous && log.HasPrevious
	log.Source, log.Download = log.source(address.Path, false), log.source(address.Path, true)
	return log
}

// source is the address of the log below that of the Job's page.
func (l *logOf) source(page string, download bool) string {
	query := url.Values{paramPod: {l.Pod}, paramWorker: {l.Worker}, paramContainer: {l.Container}}
	for name, is := range map[string]bool{paramPrevious: l.Previous, paramTimestamps: l.Timestamps, paramDownload: download} {
		if is {
			query.Set(name, "1")
		}
	}
	return page + "/log?" + query.Encode()
}

// WithLog is the page's address with the log of a container of a Pod.
func (p *page) WithLog(pod, worker, container string) string {
	return p.choosing(map[string]string{paramPod: pod, paramOn: worker, paramContainer: container, paramIndex: "", paramPrevious: ""})
}

// WithIndex is the page's address with the log of an index.
func (p *page) WithIndex(index int) string {
	return p.choosing(map[string]string{paramIndex: strconv.Itoa(index), paramPod: "", paramOn: "", paramContainer: "", paramPrevious: ""})
}

// WithoutLog is the page's address without a log.
func (p *page) WithoutLog() string {
	return p.choosing(map[string]string{
		paramIndex: "", paramPod: "", paramOn: "", paramContainer: "", paramPrevious: "", paramTimestamps: "", paramWrap: "",
	})
}
