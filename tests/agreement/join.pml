/* How the ranks of a communicator find each other (src/agree/join.cc), in a store that may hold the
 * remains of a former run with the same names: slots that are taken, generations that were decided. A
 * rank may stop anywhere, and may lose its patience at any time. All that come out agree: together in
 * one generation, or off.
 *
 * Broken on purpose, each must be found:
 *   -DMUTANT_STALE  rank 0 does not ask whether a registration answers its own;
 *   -DMUTANT_TAKEN  a rank whose slot is somebody else's uses what stands nevertheless;
 *   -DMUTANT_ALONE  a rank that has lost its patience is off without proposing it.
 */
#define RANKS 2
#define GENERATIONS 3

/* Slots. */
#define FREE 0
#define STALE 1  /* a former run's */
#define ANSWER 2 /* rank 0's own of now, or an answer to it */
#define OTHER 3  /* of now, but an answer to a former rank 0 */
#define LATE 4

/* Modes. */
#define NONE 0
#define GO 1
#define OFF 2
#define NEXT 3

byte slot[6]; /* generation * RANKS + rank */
byte mode[GENERATIONS];
byte result; /* of whoever came out first: 0 nobody, 1 off, 2 + g together in g */

#define SLOT(r) slot[generation * RANKS + (r)]

inline come_out(how) {
  d_step {
    assert(result == 0 || result == how);
    result = how
  }
}

inline propose_mode(what) {
  atomic {
    if
    :: mode[generation] == NONE -> mode[generation] = what
    :: else
    fi;
    stands = mode[generation]
  }
}

proctype Rank(byte me) {
  byte generation = 0, stands, seen, mine;
  bool registered;

  do
  :: generation >= GENERATIONS -> goto done /* the model ends here, not the protocol */
  :: else ->
    registered = false;
    seen = 1;
    stands = mode[generation];
    do
    :: stands != NONE -> break
    :: stands == NONE && !registered && (me == 0 || SLOT(0) != FREE) ->
      atomic {
        if
        :: SLOT(me) != FREE -> mine = false
        :: SLOT(me) == FREE && (me == 0 || SLOT(0) == ANSWER) -> SLOT(me) = ANSWER; mine = true
        :: SLOT(me) == FREE && me != 0 && SLOT(0) != ANSWER -> SLOT(me) = OTHER; mine = true
        fi;
        registered = mine
      }
      if
      :: !mine -> propose_mode(NEXT)
      :: else
      fi
    :: stands == NONE && registered && me == 0 && seen < RANKS && SLOT(seen) != FREE ->
      if
#ifndef MUTANT_STALE
      :: SLOT(seen) != ANSWER -> propose_mode(NEXT)
      :: else -> seen++
#else
      :: seen++
#endif
      fi
    :: stands == NONE && registered && me == 0 && seen == RANKS -> propose_mode(GO)
    :: stands == NONE && mode[generation] != NONE -> stands = mode[generation]
    :: stands == NONE -> /* out of patience */
#ifdef MUTANT_ALONE
      if
      :: me == 1 -> come_out(1); goto done
      :: me != 1 -> propose_mode(OFF)
      fi
#else
      propose_mode(OFF)
#endif
    od;
    if
    :: stands == NEXT -> generation++
    :: stands != NEXT && registered ->
      if
      :: stands == GO -> come_out(2 + generation)
      :: else -> come_out(1)
      fi;
      goto done
    :: stands != NEXT && !registered ->
      if
#ifdef MUTANT_TAKEN
      :: SLOT(me) != FREE && stands == GO -> come_out(2 + generation); goto done
      :: SLOT(me) != FREE && stands != GO -> generation++
#else
      :: SLOT(me) != FREE -> generation++
#endif
      :: SLOT(me) == FREE ->
        assert(stands != GO);
        SLOT(me) = LATE;
        come_out(1);
        goto done
      fi
    fi
  od;
done:
  skip
}

/* What a former run may have left: it went from generation to generation, and stopped anywhere. */
inline remains() {
  do
  :: generation >= GENERATIONS - 1 -> break
  :: break
  :: generation < GENERATIONS - 1 ->
    rank = 0;
    all = true;
    do
    :: rank >= RANKS -> break
    :: rank < RANKS -> SLOT(rank) = STALE; rank++
    :: rank < RANKS -> all = false; rank++
    od;
    if
    :: all -> mode[generation] = GO
    :: mode[generation] = OFF
    :: mode[generation] = NEXT
    :: break /* undecided */
    fi;
    generation++
  od
}

init {
  byte rank, generation;
  bool all;

  atomic {
    remains();
    rank = 0;
    do
    :: rank < RANKS -> run Rank(rank); rank++
    :: else -> break
    od
  }
}
