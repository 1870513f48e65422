package dashboard

import (
	"regexp"
	"slices"
	"strings"
)

// command is one of kubectl jobferry that does what a page shows, or changes what it shows.
type command struct{ What, Text string }

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[-A-Za-z0-9_./:=@%+,]+$`)

// quoted is an argument for a shell.
func quoted(argument string) string {
	if plain.MatchString(argument) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// run is the text of a command for this hub. What is in capitals is for the reader to fill in.
func (o Options) run(what string, arguments ...string) command {
	words := []string{"kubectl", "jobferry"}
	for _, argument := range slices.Concat(arguments, o.Flags) {
		words = append(words, quoted(argument))
	}
	return command{what, strings.Join(words, " ")}
}

// jobCommands do what the page of a Job shows.
func (o Options) jobCommands(p *page) []command {
	of := func(what, verb string, flags ...string) command {
		return o.run(what, slices.Concat([]string{verb, p.Job.Name, "-n", p.Job.Namespace}, flags)...)
	}
	all := []command{of("This page", "describe")}
	if !p.Job.Finished {
		all = append(all, of("Where it could run", "why"))
	}
	return append(all, of("Its Pods", "pods"), of("All logs", "logs", "--all-pods"), of("All events", "events"))
}

// logCommand prints the log that the page shows.
func (o Options) logCommand(p *page) string {
	arguments := []string{"logs", p.Job.Name, "-n", p.Job.Namespace, "--pod", p.Log.Pod, "-c", p.Log.Container}
	if p.Log.Timestamps {
		arguments = append(arguments, "--timestamps")
	}
	if p.Log.Previous {
		arguments = append(arguments, "--previous")
	} else {
		arguments = append(arguments, "-f")
	}
	return o.run("", arguments...).Text
}

// workerCommands are those for a worker.
func (o Options) workerCommands(p *page) []command {
	name := p.Worker.Name
	all := []command{o.run("This page", "clusters", name, "-o", "wide"), o.run("Its Jobs", "jobs", "-A", "--worker", name)}
	if p.Worker.Cordoned {
		all = append(all, o.run("Let it take Jobs again", "uncordon", name))
	} else {
		all = append(all, o.run("Keep new Jobs away", "cordon", name))
	}
	return append(all, o.run("Move its Jobs elsewhere", "drain", name), o.run("Give it a new token", "rotate", name, "--worker-context", "CONTEXT"))
}
