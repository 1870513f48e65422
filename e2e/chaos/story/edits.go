package story

// The kinds whose user does something midway.

func halted(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(2, 5), indexes(d.between(4, 6), 2)),
		Acts: []Act{{After: d.seconds(1, 6), Deed: Suspend}, {After: d.seconds(2, 8), Deed: Resume}},
		End:  complete,
	}
}

func createdSuspended(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(1, 4), completions(3), parallelism(3), suspended),
		Acts: []Act{{After: d.seconds(1, 6), Deed: Resume}},
		End:  complete,
	}
}

func scaled(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(2, 4), completions(8), parallelism(1)),
		Acts: []Act{{After: d.seconds(1, 4), Deed: Scale, Value: 4}, {After: d.seconds(1, 4), Deed: Scale, Value: 2}},
		End:  complete,
	}
}

func elastic(d *draft) Story {
	end := complete
	end.Elastic = true
	return Story{
		Job:  d.job(d.seconds(9, 14), indexes(3, 3)),
		Acts: []Act{{After: d.seconds(1, 4), Deed: ScaleElastic, Value: 5}},
		End:  end,
	}
}

func reselected(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(3, 6), indexes(d.between(4, 8), 2)),
		Acts: []Act{{After: d.seconds(2, 8), Deed: Reselect}},
		End:  complete,
	}
}

func deleted(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(2, 12), indexes(d.between(2, 6), 2)),
		Acts: []Act{{After: d.seconds(0, 8), Deed: Delete, Value: d.between(0, 1)}},
		End:  End{Gone: true},
	}
}

func replaced(d *draft) Story {
	return Story{
		Job:  d.job(d.seconds(2, 6), indexes(3, 3)),
		Acts: []Act{{After: d.seconds(1, 5), Deed: Replace, Value: d.between(0, 1)}},
		End:  complete,
	}
}
