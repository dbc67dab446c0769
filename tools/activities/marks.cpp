/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Chooses the yields around calls that remain. twins.cpp puts a marker before and after each call. Two yields count as
 * one yield if another activity could see or change nothing between them: no access to memory, except to variables
 * whose address is never taken, and no call. A marker is removed or moved:
 *   it is removed if on each path that leads to it, or on each path from it, another yield is that close;
 *   it moves to the remaining paths if some paths have such a yield: a loop that calls inlined functions has one yield
 *   in an iteration
 *
 *       entry -> { mark; load; mark; } -> { loop mark } -> back       becomes
 *       entry -> mark -> { load; } -> { loop mark } -> back
 *                                \-> mark -> exit
 *
 * A return counts as a yield, because a yield of the caller follows. So a call at a function's end can be a jump. The
 * markers of back-edges and of explicit yields remain, hence each loop has a marker.
 */
#include "pass.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/CFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <map>

using namespace llvm;

namespace weft
{
namespace
{
class Marks
{
      public:
	Marks(Function &F, bool EntryYields) : F(F), EntryYields(EntryYields)
	{
	}
	bool run();

      private:
	enum Kind { Passes, Yields, Acts };

	Function &F;
	bool EntryYields;
	std::map<const AllocaInst *, bool> IsOwn;
	std::vector<CallInst *> Work;

	bool isOwn(const Value *Address);
	Kind kindOf(Instruction &I);
	bool follows(BasicBlock *B, BasicBlock::iterator From, const Instruction *But);
	bool precedes(BasicBlock *B, BasicBlock::iterator Before, const Instruction *But);
	void place(Instruction *Before, CallInst *Like);
	bool sink(CallInst *Mark);
	bool hoist(CallInst *Mark);
};

bool Marks::isOwn(const Value *Address)
{
	auto *A = dyn_cast<AllocaInst>(Address);

	if (!A)
		return false;
	auto [At, New] = IsOwn.emplace(A, false);
	if (New)
		At->second = isAllocaPromotable(A);
	return At->second;
}

Marks::Kind Marks::kindOf(Instruction &I)
{
	auto *Call = dyn_cast<CallBase>(&I);

	if (auto *L = dyn_cast<LoadInst>(&I))
		return isOwn(L->getPointerOperand()) ? Passes : Acts;
	if (auto *S = dyn_cast<StoreInst>(&I))
		return isOwn(S->getPointerOperand()) ? Passes : Acts;
	if (!Call)
		return I.mayReadOrWriteMemory() ? Acts : Passes;
	if (auto *Intrinsic = dyn_cast<IntrinsicInst>(Call))
		return Intrinsic->isAssumeLikeIntrinsic() || !I.mayReadOrWriteMemory() ? Passes : Acts;
	for (StringRef Name : {CallMark, LoopMark, YieldMark, YieldNow, YieldKept})
		if (calls(I, Name))
			return Yields;
	return calls(I, EntryMark) ? Passes : Acts;
}

/* A callee that yields at its entry does so before any other action. */
static bool yieldsAtEntry(const Instruction &I)
{
	auto *Call = dyn_cast<CallBase>(&I);
	Function *Callee = Call ? Call->getCalledFunction() : nullptr;

	return Callee && Callee->hasFnAttribute(EntryAttribute);
}

/* Is a yield other than `But` next on each path? */
bool Marks::follows(BasicBlock *B, BasicBlock::iterator At, const Instruction *But)
{
	SmallPtrSet<BasicBlock *, 8> Seen;
	std::vector<BasicBlock *> Todo;

	for (;;) {
		while (&*At != But && kindOf(*At) == Passes && !At->isTerminator())
			++At;
		bool Comes = &*At != But && (kindOf(*At) == Yields || yieldsAtEntry(*At));
		if (!Comes && (kindOf(*At) != Passes || isa<ResumeInst>(*At)))
			return false;
		if (!Comes)
			for (BasicBlock *S : successors(B))
				if (Seen.insert(S).second)
					Todo.push_back(S);
		if (Todo.empty())
			return true;
		B = Todo.back();
		At = B->begin();
		Todo.pop_back();
	}
}

/* Is a yield other than `But` the last on each path to this place? */
bool Marks::precedes(BasicBlock *B, BasicBlock::iterator Before, const Instruction *But)
{
	SmallPtrSet<BasicBlock *, 8> Seen;
	std::vector<BasicBlock *> Todo;

	for (;;) {
		BasicBlock::iterator At = Before;
		Kind Found = Passes;

		while (At != B->begin() && Found == Passes) {
			--At;
			if (&*At == But)
				return false;
			Found = kindOf(*At);
		}
		if (Found == Acts || (Found == Passes && B->isEntryBlock() && !EntryYields))
			return false;
		if (Found == Passes)
			for (BasicBlock *Before : predecessors(B))
				if (Seen.insert(Before).second)
					Todo.push_back(Before);
		if (Todo.empty())
			return true;
		B = Todo.back();
		Before = B->end();
		Todo.pop_back();
	}
}

void Marks::place(Instruction *Before, CallInst *Like)
{
	auto *Mark = cast<CallInst>(Like->clone());

	Mark->insertBefore(Before->getIterator());
	Work.push_back(Mark);
}

/* A block between From and To that no other path enters; NULL: there can be none. */
static BasicBlock *between(BasicBlock *From, BasicBlock *To)
{
	Instruction *Jump = From->getTerminator();

	if (To->getUniquePredecessor())
		return To;
	if (From->getUniqueSuccessor())
		return From;
	return SplitCriticalEdge(Jump, GetSuccessorNumber(From, To),
				 CriticalEdgeSplittingOptions().setMergeIdenticalEdges());
}

/* Moves the marker from the end of its block to the successors on whose paths no yield follows, unless these are
 * all. */
bool Marks::sink(CallInst *Mark)
{
	BasicBlock *B = Mark->getParent();
	SmallPtrSet<BasicBlock *, 4> All, Bare;

	if (!isa<BranchInst, SwitchInst>(B->getTerminator()))
		return false;
	for (auto At = std::next(Mark->getIterator()); At != B->end(); ++At)
		if (kindOf(*At) != Passes)
			return false;
	for (BasicBlock *S : successors(B)) {
		All.insert(S);
		if (!follows(S, S->begin(), Mark))
			Bare.insert(S);
	}
	if (Bare.size() == All.size())
		return false;
	for (BasicBlock *S : Bare) {
		BasicBlock *Edge = between(B, S);

		place(&*Edge->getFirstInsertionPt(), Mark);
	}
	Mark->eraseFromParent();
	return true;
}

/* Moves the marker from the beginning of its block to the predecessors on whose paths no yield precedes, unless
 * these are all. */
bool Marks::hoist(CallInst *Mark)
{
	BasicBlock *B = Mark->getParent();
	SmallPtrSet<BasicBlock *, 4> All, Bare;

	for (auto At = B->begin(); &*At != Mark; ++At)
		if (kindOf(*At) != Passes)
			return false;
	for (BasicBlock *P : predecessors(B)) {
		if (!isa<BranchInst, SwitchInst>(P->getTerminator()))
			return false;
		All.insert(P);
		if (!precedes(P, P->end(), Mark))
			Bare.insert(P);
	}
	if (Bare.size() == All.size())
		return false;
	for (BasicBlock *P : Bare)
		place(between(P, B)->getTerminator(), Mark);
	Mark->eraseFromParent();
	return true;
}

bool Marks::run()
{
	bool Changed = false;

	for (Instruction &I : instructions(F))
		if (calls(I, CallMark))
			Work.push_back(cast<CallInst>(&I));
	for (size_t Left = 4 * Work.size(); Left && !Work.empty(); Left--) {
		CallInst *Mark = Work.back();
		BasicBlock *B = Mark->getParent();

		Work.pop_back();
		if (follows(B, std::next(Mark->getIterator()), Mark) || precedes(B, Mark->getIterator(), Mark))
			Mark->eraseFromParent();
		else if (!sink(Mark) && !hoist(Mark))
			continue;
		Changed = true;
	}
	return Changed;
}
} // namespace

bool settleMarks(Function &F, bool EntryYields)
{
	return Marks(F, EntryYields).run();
}
} // namespace weft
