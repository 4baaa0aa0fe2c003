/* How ranks walk through the epochs of a context (src/agree/epochs.h), with cells that are written
 * once: whatever the leader proposes, however late or early, whoever stops anywhere, whenever the store
 * is emptied, restarted without its last write or away for a while, and whatever ranks have read ahead,
 * no two ranks use different arms for one call.
 *
 * Broken on purpose, each must be found:
 *   -DMUTANT_HOLD   a rank that finds a cell empty holds without proposing it;
 *   -DMUTANT_BLIND  a rank does not notice that the store was emptied;
 *   -DMUTANT_START  a hold keeps the arm of the beginning, and not that of the last schedule, but only
 *                   on one rank (an incumbent that is not agreed);
 *   -DMUTANT_REMEMBER a rank that reads ahead remembers that a cell was empty;
 *   -DMUTANT_IMPATIENT a rank that cannot reach the store holds on its own.
 */
#define RANKS 2 /* any two that differ are two; more make the search too large */
#define CALLS 5
#define EPOCHS 5

/* Arms. */
#define NONE 0
#define FIRST 1 /* the incumbent of the beginning */
#define SECOND 2
#define THIRD 3

/* What stands in a cell. */
#define EMPTY 0
#define HOLD 1     /* the incumbent, once */
#define SETTLED 2  /* the second arm, twice; from now on it is the incumbent */
#define EXPLORES 3 /* the third arm, then the incumbent of the beginning, which it stays */

byte cell[EPOCHS];
bool emptied;     /* and with it the nonce is gone, or a restart is noticed */
bool away;        /* the store does not answer */
byte used[CALLS]; /* by whoever got there first */

inline use(arm) {
  d_step {
    if
    :: index < CALLS ->
      assert(used[index] == NONE || used[index] == arm);
      used[index] = arm;
      index++
    :: else
    fi
  }
}

proctype Rank(byte me) {
  byte index = 0, epoch = 1, incumbent = FIRST, stands;
  byte known = EMPTY; /* what stands for the epoch to come, read ahead */

  use(FIRST); /* epochs without a cell */
  do
  :: index >= CALLS || epoch >= EPOCHS -> break
  :: else ->
    /* The background thread reads ahead, or does not come to it. */
    atomic {
      if
      :: !away && !emptied ->
        known = cell[epoch];
#ifdef MUTANT_REMEMBER
        if
        :: known == EMPTY -> known = HOLD
        :: else
        fi
#endif
      :: true
      fi
    }
    atomic {
      if
      :: known != EMPTY -> stands = known; known = EMPTY; goto entered
      :: else
      fi
    }
    /* Waits for the store, or loses its patience. */
    if
    :: !away
    :: away ->
#ifdef MUTANT_IMPATIENT
      stands = HOLD;
      goto entered
#else
      goto failed
#endif
    fi;
    atomic {
#ifndef MUTANT_BLIND
      if
      :: emptied -> goto failed
      :: else
      fi;
#endif
      stands = cell[epoch];
      if
      :: stands == EMPTY ->
        stands = HOLD;
#ifdef MUTANT_HOLD
        if
        :: me == 1
        :: me != 1 -> cell[epoch] = HOLD
        fi
#else
        cell[epoch] = HOLD
#endif
      :: else
      fi
    }
entered:
    if
    :: stands == HOLD ->
#ifdef MUTANT_START
      if
      :: me == 1 -> use(FIRST)
      :: me != 1 -> use(incumbent)
      fi
#else
      use(incumbent)
#endif
    :: stands == SETTLED ->
      incumbent = SECOND;
      use(SECOND);
      use(SECOND)
    :: stands == EXPLORES ->
      incumbent = FIRST;
      use(THIRD);
      use(FIRST)
    fi;
    epoch++
  od;
failed:
  skip
}

/* Rank 0's own thread: proposes at any time, or not at all. Ranks that ask ahead, for groups that are
 * only simulated, propose holds for what is to come. */
proctype Proposer() {
  byte epoch = 1, proposal;

  do
  :: epoch >= EPOCHS -> break
  :: else ->
    if
    :: proposal = HOLD
    :: proposal = SETTLED
    :: proposal = EXPLORES
    :: proposal = EMPTY /* not this time */
    fi;
    atomic {
      if
      :: !emptied && proposal != EMPTY && cell[epoch] == EMPTY -> cell[epoch] = proposal
      :: else
      fi;
      proposal = EMPTY
    }
    epoch++
  od
}

/* Empties the store, or restarts it without one of the last writes. */
proctype Vandal() {
  byte epoch = 0;

  if
  :: d_step {
      emptied = true;
      do
      :: epoch < EPOCHS -> cell[epoch] = EMPTY; epoch++
      :: else -> break
      od
    }
  :: do
    :: epoch < EPOCHS - 1 -> epoch++
    :: break
    od;
    skip;
    d_step {
      emptied = true;
      cell[epoch] = EMPTY
    }
  fi
}

proctype Outage() {
  away = true;
  away = false
}

init {
  byte rank = 0;

  atomic {
    do
    :: rank < RANKS -> run Rank(rank); rank++
    :: else -> break
    od;
    run Proposer();
    run Vandal();
    run Outage()
  }
}
